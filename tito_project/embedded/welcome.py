"""What `up` prints once everything answers."""

from dataclasses import dataclass
from pathlib import Path

_SNIPPET = """\
import json, urllib.request
from openai import OpenAI

base = "{base}"
headers = {headers}
create = urllib.request.Request(f"{{base}}/sessions", method="POST", headers=headers)
with urllib.request.urlopen(create) as reply:
    session = json.load(reply)["session_id"]
    key = reply.headers["X-Tito-Session-Key"] or session
client = OpenAI(base_url=f"{{base}}/sessions/{{session}}/v1", api_key=key)
messages = [{{"role": "user", "content": "What is 17 * 23?"}}]
answer = client.chat.completions.create(model="default", messages=messages)
print(answer.choices[0].message.content)
"""
_NAMES_HINT = "  Note      other machines are refused until ALLOWED_HOSTS has the name they use\n"


@dataclass(frozen=True, slots=True)
class Welcome:
    """Facts of one running `up`."""

    base: str
    home: Path
    engine: str
    engine_trouble: str | None
    """Why an engine of yours is not ready."""
    admin_password: str | None
    """Set once, when the account was just made."""
    admin_token_file: Path | None
    """Set when creating sessions needs the admin token that we generated."""
    token_required: bool
    unreachable_names: bool
    """Bound for other machines, while ALLOWED_HOSTS knows loopback names only."""

    def snippet(self) -> str:
        """A whole program: one session, one turn."""
        return _SNIPPET.format(base=self.base, headers=self._headers())

    def text(self) -> str:
        """The screen. The program is not indented: what is copied has to run."""
        return (
            f"\nTITO is ready.\n"
            f"  Base URL  {self.base}\n"
            f"  Admin     {self.base}/admin/{self._account()}\n"
            f"  Engine    {self.engine}{self._trouble()}\n"
            f"  Home      {self.home} (data and logs)\n"
            f"  Demo      manage.py demo --base-url {self.base}, from another terminal: agents to look at\n"
            f"{_NAMES_HINT if self.unreachable_names else ''}"
            f"\nTry it from another terminal (this Python, or pip install openai):\n\n{self.snippet()}\n"
            f"Ctrl-C stops everything.\n"
        )

    def _trouble(self) -> str:
        return f"\n            (not ready: {self.engine_trouble})" if self.engine_trouble else ""

    def _account(self) -> str:
        if self.admin_password is None:
            return "\n            (a forgotten password: `manage.py changepassword admin`, while this runs)"
        return (
            f"\n            user admin, password {self.admin_password}"
            f"\n            (shown this once; change it with `manage.py changepassword admin`)"
        )

    def _headers(self) -> str:
        """Source text of the header dictionary; a token is read from its file, never printed."""
        if not self.token_required:
            return "{}"
        if self.admin_token_file is None:
            return '{"Authorization": "Bearer " + "the TITO_ADMIN_TOKEN"}'
        return f'{{"Authorization": "Bearer " + open({str(self.admin_token_file)!r}).read().strip()}}'
