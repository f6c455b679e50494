"""Pages as a browser without JavaScript reads them: their forms, and what stands in the fields."""

from html.parser import HTMLParser


class _Forms(HTMLParser):
    """The forms of a page: where each is sent, and what its fields hold."""

    def __init__(self):
        super().__init__()
        self.found = []
        self._select = self._area = ""

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "form":
            self.found.append({"action": given.get("action"), "fields": {}, "invalid": set()})
        elif tag in ("input", "textarea", "select") and self.found and given.get("name"):
            form = self.found[-1]
            if "aria-invalid" in given:
                form["invalid"].add(given["name"])
            if given.get("type") in ("checkbox", "radio"):
                if "checked" in given:
                    form["fields"].setdefault(given["name"], []).append(given.get("value", "on"))
            elif tag == "select":
                self._select = given["name"]
            elif tag == "textarea":
                self._area = given["name"]
                form["fields"][self._area] = [""]
            else:
                form["fields"].setdefault(given["name"], []).append(given.get("value") or "")
        elif tag == "option" and self._select and self.found:
            fields = self.found[-1]["fields"]
            value = given.get("value") or ""
            if "selected" in given or self._select not in fields:
                fields[self._select] = [value]

    def handle_data(self, data):
        if self._area:
            self.found[-1]["fields"][self._area][0] += data

    def handle_endtag(self, tag):
        if tag == "textarea":  # the first line break belongs to the markup
            area = self.found[-1]["fields"][self._area]
            area[0] = area[0].removeprefix("\n")
            self._area = ""
        if tag == "select":
            self._select = ""


def forms(html):
    """The forms of a page."""
    parser = _Forms()
    parser.feed(html)
    return parser.found
