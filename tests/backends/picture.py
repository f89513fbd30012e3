"""A picture of a page after so many seconds, by Chromium: ``python picture.py URL FILE SECONDS [WORD]``, with
``websockets``. The button with that word is pressed before."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import websockets

WIDTH, HEIGHT = 1500, 900


async def picture(browser: str, url: str, to: Path, seconds: float, word: str) -> None:
    """Open a page in the browser that answers at this address, wait, and keep what it shows."""
    async with websockets.connect(browser, max_size=None) as socket:
        number = 0

        async def ask(method: str, session: str | None = None, **parameters: Any) -> Any:
            nonlocal number
            number += 1
            asked = {"id": number, "method": method, "params": parameters}
            await socket.send(json.dumps(asked | ({"sessionId": session} if session else {})))
            while True:
                answer = json.loads(await socket.recv())
                if answer.get("id") == number:
                    if "error" in answer:
                        raise RuntimeError(f"{method}: {answer['error']}")
                    return answer["result"]

        page = await ask("Target.createTarget", url="about:blank")
        session = (await ask("Target.attachToTarget", targetId=page["targetId"], flatten=True))["sessionId"]
        await ask("Page.navigate", session, url=url)
        await asyncio.sleep(seconds)
        if word:
            found = f"[...document.querySelectorAll('button')].find(b => b.innerText.startsWith({json.dumps(word)}))"
            await ask("Runtime.evaluate", session, expression=f"{found}?.click()")
            await asyncio.sleep(seconds / 5)
        shown = await ask("Page.captureScreenshot", session, format="png")
        to.write_bytes(base64.b64decode(shown["data"]))


def main(url: str, to: Path, seconds: float, word: str) -> None:
    """Start a browser of its own, take the picture, end it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        chromium = subprocess.Popen(
            [
                *(shutil.which("chromium") or "chromium", "--headless=new", "--no-sandbox", "--disable-gpu"),
                *("--hide-scrollbars", f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}"),
                *("--remote-debugging-port=0", "about:blank"),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert chromium.stderr is not None
            for line in chromium.stderr:
                if found := re.search(r"ws://\S+", line):
                    asyncio.run(picture(found[0], url, to, seconds, word))
                    return
            raise RuntimeError("Chromium did not start.")
        finally:
            chromium.terminate()
            chromium.wait(30)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), "".join(sys.argv[4:5]))
