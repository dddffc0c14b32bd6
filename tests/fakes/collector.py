"""A collector of OTLP traces that keeps what it decodes."""

from http.server import BaseHTTPRequestHandler, HTTPServer

from trainer_export.traces.otlp import Encoding, decode_traces, traces_response


class Receiver(HTTPServer):
    """Keeps what it decodes, answers what a receiver answers."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans = []
        self.bodies = []
        self.encodings = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1/traces"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        coding = self.headers.get("Content-Encoding", "")
        batch = decode_traces(body, self.headers["Content-Type"], coding)
        self.server.spans += batch.spans
        self.server.bodies.append(body)
        self.server.encodings.append(coding)
        answer = traces_response(Encoding.PROTOBUF, batch.rejected)
        self.send_response(200)
        self.send_header("Content-Type", Encoding.PROTOBUF)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        """Silent."""
