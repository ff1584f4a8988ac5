"""What check.py waits for, and what ends it, of the answers of a server that is none."""

import http.server
import json
import threading
import unittest

import check

ANSWERS = {
    "/api/v1/rules": {"groups": [{"rules": [{"name": "Slow", "health": "ok"}]}]},
    "/api/v1/query": {"result": [1]},
}


class Server(http.server.BaseHTTPRequestHandler):
    """Answers with a status, and with values where that is 200."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()
        data = ANSWERS[self.path.partition("?")[0]] if self.status == 200 else None
        self.wfile.write(json.dumps({"data": data}).encode())

    def log_message(self, *_: object) -> None: ...


class Lacking(unittest.TestCase):
    def setUp(self) -> None:
        server = http.server.HTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}"

    def test_ready(self) -> None:
        Server.status = 200
        self.assertEqual(check.lacking(self.url, {"up"}), [])

    def test_not_ready(self) -> None:
        for Server.status in 500, 503:
            self.assertEqual(len(check.lacking(self.url, {"up"})), 1)

    def test_no_server(self) -> None:
        self.assertIn("refused", check.lacking("http://127.0.0.1:1", {"up"})[0])

    def test_wrong(self) -> None:
        for Server.status in check.WRONG:
            self.assertRaises(SystemExit, check.lacking, self.url, {"up"})


unittest.main()
