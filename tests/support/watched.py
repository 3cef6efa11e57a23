"""What a test sees and does in the page, and how it waits there: for conditions, not for times."""


def picture(page):
    return page.evaluate("cotidal.store.picture")


def told(page):
    return page.evaluate("cotidal.store.logs.told")


def orders(page):
    return picture(page)["partitions"]["orders-0"]


def until(page, expression):
    """Asked from here: the page's own policy forbids to evaluate text in it."""
    for _ in range(400):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not within 20 s: {expression}; {told(page)[-4:]}")


def wait(page, expression):
    """``p`` is the picture, ``o`` the partition orders-0 in it: none between two worlds."""
    until(
        page,
        f"(() => {{ const p = cotidal.store.picture; const o = p.partitions?.['orders-0'];"
        f" return p.state !== undefined && {expression}; }})()",
    )


def run_fast(page, speed="10"):
    wait(page, "true")
    page.select_option("#speed", speed)
    if picture(page)["state"] != "running":
        page.click("#play")
    wait(page, "p.state === 'running'")


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def drag(page, *points):
    """In the coordinates of the picture of the cluster."""
    placed = """([x, y]) => {
      const at = new DOMPoint(x, y).matrixTransform(cotidal.map.root.getScreenCTM());
      return [at.x, at.y];
    }"""
    places = [page.evaluate(placed, list(point)) for point in points]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()
