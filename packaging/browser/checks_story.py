"""Checks of a file's page: parts, links, the reason of a failure, forgetting it."""

import os
import re

from checks_action import confirm
from station import until


def parts_and_links(page, station):
    """A file that was sent in parts shows them, its proof, and its address."""
    job = station.ends("parts.mov", "delivered")
    page.go(f"files/{job['job']}")
    page.shows("parts.mov", within=".head")
    page.shows("in 3 parts of up to 5 MiB", "verified by md5_parts")
    page.shows('"part_size": 5242880', within="pre")
    url = job["deliveries"][0]["url"]
    links = page.run("""return [...document.querySelectorAll('main a[href]')]
        .filter((node) => node.origin !== location.origin).map((node) => [node.href, node.rel, node.target])""")
    # In the timeline, and beside its key.
    assert links == [[url, "noopener noreferrer", "_blank"]] * 2, links
    page.picture("story-parts")


def links_of_a_liar(page, station):
    """An address from a destination is a link only if it is a web address."""
    page.go("")
    links = page.driver.execute_async_script("""
        const done = arguments[arguments.length - 1];
        const urls = ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', '//x.example/a', 'https://x.example/a'];
        const deliveries = urls.map((url, index) => ({ destination: 'd' + index, state: 'delivered', attempts: 1, url }));
        const job = { job: 1, path: '/a', size: 1, state: 'delivered', deliveries, admitted_at: '2026-01-01T00:00:00.000Z' };
        import('/assets/story.js').then(({ view }) => {
            const drawn = view.render({ id: '1', data: { story: { job, events: [], parts: [] } } });
            const hrefs = [...drawn.querySelectorAll('a')].map((node) => node.getAttribute('href'));
            done([hrefs.filter((href) => !href.startsWith('#/')), drawn.textContent.includes('javascript:alert(1)')]);
        }, (error) => done(String(error)))""")
    assert links == [["https://x.example/a"], True], links


def parts_arrive(page, station):
    """During a transfer the page shows the bar and the uploaded parts."""
    station.put("steady/long.mov", os.urandom(30 << 20))
    until(lambda: station.job("long.mov"), what="it is taken in")
    job = station.job("long.mov")["job"]
    page.go(f"files/{job}")
    page.shows("Transfers", seconds=20)
    page.shows("of 30 MiB", within=".progress", seconds=20)
    page.shows("Uploaded parts", seconds=30)
    page.run("document.querySelector('main details').open = true")
    # It stays open when the next ones come.
    until(lambda: re.match(r"[2-6] parts, \d+ MiB", page.text("main details summary")), 30, "more parts")
    rows = page.texts("main details tbody tr")
    assert len(rows) >= 2 and all("steady" in row and "5 MiB" in row for row in rows), rows
    page.picture("story-moving")
    confirm(page, "Cancel", "Cancel job")
    page.shows("cancelled", within=".head")


def failed_and_forgotten(page, station):
    """A failed file shows the reason. Inlet forgets it only after a yes; then no list has it."""
    job = station.ends("lost.mov", "failed")["job"]
    page.go(f"files/{job}")
    page.shows("failed", "Not a directory (given up after 1 attempt)", "destination_unwritable", within=".head")
    page.shows("job.failed")
    assert page.button("Retry…"), "it cannot be sent again"
    page.picture("story-failed")
    page.press("Forget…")
    page.shows(f"Forget job {job}?", within="dialog")
    page.press("Cancel", "dialog")
    assert station.get(f"jobs/{job}")["state"] == "failed", "it was forgotten without a yes"
    confirm(page, "Forget")
    page.shows("Files", within="h1")
    page.one("a.job")
    until(lambda: not any("lost.mov" in row for row in page.texts("tbody tr")), what="it is in no list")
    assert not station.job("lost.mov"), "the agent still has it"


CHECKS = [(check, None) for check in (parts_and_links, links_of_a_liar, parts_arrive, failed_and_forgotten)]
