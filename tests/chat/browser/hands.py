"""Three ways to use the page. A story is written once, in what a person wants, and told by each of them."""

from abc import ABC, abstractmethod

from playwright.sync_api import Locator, Page, expect

TABS_MAX = 60


def connected(page: Page) -> None:
    expect(page.locator("#connection")).to_have_attribute("data-state", "connected")


def write(page: Page, text: str) -> None:
    """Say something with the keyboard."""
    page.locator("#words-box").fill(text)
    page.keyboard.press("Enter")


def answers(page: Page) -> Locator:
    """The answers that stand and have ended."""
    return page.locator('#timeline > .from-assistant[data-state="complete"] > .prose')


def words(page: Page) -> Locator:
    """The words of the person's that stand."""
    return page.locator("#timeline > .from-user[data-message] > .bubble")


class Hand(ABC):
    """What a person wants, by whatever means; how it is done is each hand's own."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def write(self, text: str) -> None:
        self.page.locator("#words-box").fill(text)
        self.press(self.page.locator("#send"))

    @abstractmethod
    def press(self, target: Locator) -> None:
        """Use a button, a link or a fold."""

    def choose(self, name: str) -> None:
        """Pick from the menu that is open."""
        self.press(self.page.get_by_role("menuitem", name=name).or_(self.page.get_by_role("menuitemradio", name=name)))

    @abstractmethod
    def message_menu(self, message: Locator) -> None:
        """Open the menu of a message."""

    @abstractmethod
    def row_menu(self, title: str) -> None:
        """Open the menu of a conversation in the list."""

    def to_list(self) -> None:  # noqa: B027 - at a desk the list is always in sight
        """Make the list of conversations reachable."""

    def row(self, title: str) -> Locator:
        return self.page.locator("#conversations li", has_text=title)


class Mouse(Hand):
    """A pointer at a desk."""

    def press(self, target: Locator) -> None:
        target.click()

    def message_menu(self, message: Locator) -> None:
        message.locator("h3").first.evaluate("node => node.parentElement.scrollIntoView({block: 'center'})")
        message.click(button="right", position={"x": 4, "y": 4})

    def row_menu(self, title: str) -> None:
        self.row(title).hover()
        self.row(title).locator(".row-menu").click()


class Touch(Hand):
    """Fingers on a phone."""

    def press(self, target: Locator) -> None:
        target.tap()

    def message_menu(self, message: Locator) -> None:
        message.locator(".act-more").tap()

    def to_list(self) -> None:
        # Not whether it is seen: one that closes is seen until it is gone.
        button = self.page.locator("#open-drawer")
        if button.get_attribute("aria-expanded") != "true":
            button.tap()
        expect(button).to_have_attribute("aria-expanded", "true")

    def row_menu(self, title: str) -> None:
        self.to_list()
        self.row(title).locator(".row-menu").tap()


class Keyboard(Hand):
    """A keyboard alone: what it cannot reach by Tab and arrows fails."""

    def write(self, text: str) -> None:
        self.page.keyboard.press("Shift+Escape")
        expect(self.page.locator("#words-box")).to_be_focused()
        self.page.keyboard.insert_text(text)
        self.page.keyboard.press("Enter")

    def is_on(self, target: Locator) -> bool:
        return bool(target.evaluate("node => node === document.activeElement"))

    def reach(self, target: Locator) -> None:
        """By Tab, first forwards, then backwards: whatever is there must take the focus within TABS_MAX steps."""
        target.wait_for()
        for key in ("Tab", "Shift+Tab"):
            for _ in range(TABS_MAX):
                if self.is_on(target):
                    return
                self.page.keyboard.press(key)
        raise AssertionError(f"not reachable by Tab: {target}")

    def press(self, target: Locator) -> None:
        in_menu = target.evaluate("node => Boolean(node.closest('[role=menu]'))")
        if in_menu:
            for _ in range(12):
                if self.is_on(target):
                    break
                self.page.keyboard.press("ArrowDown")
            assert self.is_on(target)
        else:
            self.reach(target)
        self.page.keyboard.press("Enter")

    def to_list(self) -> None:
        button = self.page.locator("#open-drawer")
        if button.is_visible() and button.get_attribute("aria-expanded") != "true":
            self.press(button)
            expect(self.page.locator("#close-drawer")).to_be_focused()

    def message_menu(self, message: Locator) -> None:
        self.page.keyboard.press("Shift+Escape")
        for _ in range(TABS_MAX):
            self.page.keyboard.press("Alt+ArrowUp")
            if self.is_on(message):
                self.page.keyboard.press("Enter")
                return
        raise AssertionError("the message was not walked to")

    def row_menu(self, title: str) -> None:
        self.page.keyboard.press("Control+k")
        expect(self.page.locator("#search")).to_be_focused()
        link = self.row(title).locator("a")
        for _ in range(TABS_MAX):
            self.page.keyboard.press("ArrowDown")
            if self.is_on(link):
                self.page.keyboard.press("ArrowRight")
                return
        raise AssertionError(f"{title} was not reached in the list")
