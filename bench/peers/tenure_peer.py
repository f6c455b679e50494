"""Tenure itself, by its public interface, in the same frame as the others. Its options come as TENURE_*."""

from adapter import URL, hang, main, mark

from tenure import Tenure

app = Tenure(URL)


@app.job(name="hang")
async def hangs() -> None:
    await hang()


def tick() -> None:
    @app.every("1s")
    async def ticks() -> None:
        mark()

    app.run()


if __name__ == "__main__":
    main(put=lambda: app.trigger("hang"), work=app.run, tick=tick)
