"""A page's forms filled by mouse, by finger, or with the keyboard alone."""

import re

from playwright.sync_api import Locator, Page, expect

TABS_MAX = 120


class Hand:
    """`how` is mouse, touch or keyboard; what the keyboard cannot reach by Tab fails."""

    def __init__(self, page: Page, how: str) -> None:
        self.page, self.how = page, how
        self.keyboard = how == "keyboard"

    def skip(self) -> None:
        """With the keyboard over what stands before a page's content, by the first link that there is; a page that
        puts one into a field needs none."""
        if self.keyboard and self.page.locator("#content :focus").count() == 0:
            self.page.keyboard.press("Tab")
            self.page.keyboard.press("Enter")
            expect(self.page).to_have_url(re.compile("#content$"))

    def reach(self, target: str | Locator) -> Locator:
        """Go on with Tab until the element has the focus. A string is a selector, here and below."""
        found = self._located(target)
        element = found.element_handle()
        for _step in range(TABS_MAX):
            if element.evaluate("element => element === document.activeElement"):
                return found
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{target} cannot be reached with the Tab key")

    def point(self, target: str | Locator) -> Locator:
        """Click or tap it; the keyboard goes there and does nothing yet."""
        found = self._located(target)
        if self.keyboard:
            return self.reach(found)
        if self.how == "touch":
            found.tap()
        else:
            found.click()
        return found

    def press(self, target: str | Locator) -> None:
        """Press a button or follow a link."""
        self.point(target)
        if self.keyboard:
            self.page.keyboard.press("Enter")

    def tick(self, target: str | Locator) -> None:
        """Tick a box, or clear it."""
        self.point(target)
        if self.keyboard:
            self.page.keyboard.press("Space")

    def write(self, target: str | Locator, words: str) -> None:
        """Write into a field, in the place of what stands there."""
        self.point(target)
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.type(words)

    def choose(self, target: str | Locator, label: str) -> None:
        """Choose from a list of choices. The menu that a mouse opens is the system's own, out of a page's sight."""
        if self.keyboard:
            self.reach(target)
            self.page.keyboard.type(label)
        else:
            self._located(target).select_option(label=label)

    def _located(self, target: str | Locator) -> Locator:
        return self.page.locator(target) if isinstance(target, str) else target
