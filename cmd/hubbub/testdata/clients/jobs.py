"""A client of the service's jobs in Python, with the library requests.

It does what programs that use such a service do: one class with seven calls, a new
connection for each request, null for every option that is not given, polling. Then it
checks the answers. The last line that it prints is "ok".

usage: jobs.py BASE_URL CA_FILE AUDIO     (the key is in API_KEY, the secret of
webhooks in WEBHOOK_SECRET)
"""
import hashlib
import hmac
import http.server
import io
import json
import os
import queue
import re
import sys
import tempfile
import threading
import time

import requests

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


class JobFailed(Exception):
    pass


class JobCanceled(Exception):
    pass


class Client:
    def __init__(self, base, key):
        self.base = base + "/v1"
        self.headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
        self.get("/test")

    def get(self, path):
        answer = requests.get(self.base + path, headers=self.headers, timeout=60)
        answer.raise_for_status()
        return answer.json()

    def post(self, path, fields):
        answer = requests.post(self.base + path, json=fields, headers=self.headers, timeout=60)
        answer.raise_for_status()
        return answer.json()

    def upload(self, path, media=None):
        with open(path, "rb") as file:
            content = file.read()
        media = media or "media://" + hashlib.md5(content).hexdigest()
        address = self.post("/media/input", {"url": media})["url"]
        # A file object: requests sends its length, and an empty one in chunks.
        requests.put(address, data=io.BytesIO(content), timeout=60).raise_for_status()
        return media

    def options(self, media, given):
        fields = {"url": media, "model": "precision-2", "numSpeakers": None, "minSpeakers": None, "maxSpeakers": None,
                  "confidence": False, "turnLevelConfidence": False, "exclusive": False}
        fields.update(given)
        return fields

    def diarize(self, media, **given):
        return self.post("/diarize", self.options(media, {"transcription": False, **given}))

    def voiceprint(self, media, **given):
        return self.post("/voiceprint", {"url": media, "model": "precision-2", **given})

    def identify(self, media, people, exclusive_matching=True, threshold=0.0, **given):
        return self.post("/identify", self.options(media, {
            "voiceprints": [{"label": label, "voiceprint": v} for label, v in people.items()],
            "matching": {"exclusive": exclusive_matching, "threshold": threshold}, **given}))

    def retrieve(self, job_id, every=0.2):
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            job = self.get("/jobs/" + job_id)
            assert job["jobId"] == job_id and set(job) <= {"jobId", "status", "createdAt", "updatedAt", "output"}, job
            if job["status"] == "failed":
                raise JobFailed(job.get("output", {}).get("error", "no reason"))
            if job["status"] == "canceled":
                raise JobCanceled(job.get("output", {}).get("error", "no reason"))
            if job["status"] == "succeeded":
                return job["output"]
            assert job["status"] in ("created", "pending", "running") and "output" not in job, job
            time.sleep(every)
        raise TimeoutError(job_id)


def refused(status, call, *args, **given):
    """The body of an answer that is an error."""
    try:
        call(*args, **given)
    except requests.HTTPError as e:
        assert e.response.status_code == status, (e.response.status_code, e.response.text)
        return e.response.json(), e.response.headers
    raise AssertionError("accepted: %s %s" % (args, given))


def job_of(accepted, *warnings):
    assert set(accepted) == {"jobId", "status"} | ({"warning"} if warnings else set()), accepted
    assert UUID.match(accepted["jobId"]) and accepted["status"] == "created", accepted
    assert all(w in accepted["warning"] for w in warnings), accepted
    return accepted["jobId"]


def is_turns(list, *more):
    assert list, "no turns"
    start = 0
    for turn in list:
        assert set(turn) == {"speaker", "start", "end", *more}, turn
        assert turn["speaker"] and start <= turn["start"] < turn["end"], turn
        start = turn["start"]
    return list


class Receiver(http.server.BaseHTTPRequestHandler):
    """A webhook that fails the first time."""
    calls = queue.Queue()
    first = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(503 if Receiver.first else 204)
        self.end_headers()
        Receiver.first = False
        self.calls.put((self.headers, body))

    def log_message(self, *args):
        pass


def webhook():
    headers, body = Receiver.calls.get(timeout=240)
    signed = b"v0:" + headers["X-Request-Timestamp"].encode() + b":" + body
    want = hmac.new(os.environ["WEBHOOK_SECRET"].encode(), signed, hashlib.sha256).hexdigest()
    assert headers["X-Signature"] == want and abs(time.time() - int(headers["X-Request-Timestamp"])) < 300, headers
    return headers, json.loads(body)


def check(base, audio):
    error, _ = refused(401, Client, base, "wrong")
    assert UUID.match(error["requestId"]) and error["message"], error
    client = Client(base, os.environ["API_KEY"])
    media = client.upload(audio)
    assert client.upload(audio) == media
    own = ("The model precision-2 is not available",)

    plain = client.retrieve(job_of(client.diarize(media), *own))
    assert set(plain) == {"diarization"}, plain
    is_turns(plain["diarization"])
    everything = client.retrieve(job_of(client.diarize(
        media, numSpeakers=1, confidence=True, turnLevelConfidence=True, exclusive=True, transcription=True, model="hubbub",
        transcriptionConfig={"model": "parakeet-tdt-0.6b-v3"}), "parakeet"))
    assert set(everything) == {"diarization", "exclusiveDiarization", "confidence", "turnLevelTranscription", "wordLevelTranscription"}, everything
    for turn in is_turns(everything["diarization"], "confidence") + is_turns(everything["exclusiveDiarization"], "confidence"):
        assert set(turn["confidence"]) == {"SPEAKER_00"} and all(0 <= c <= 100 for c in turn["confidence"].values()), turn
    assert everything["confidence"]["resolution"] == 0.02 and all(0 <= s <= 100 for s in everything["confidence"]["score"])
    said = " ".join(t["text"] for t in is_turns(everything["turnLevelTranscription"], "text"))
    words = " ".join(w["text"] for w in is_turns(everything["wordLevelTranscription"], "text"))
    assert said and said == words, (said, words)

    sample = client.retrieve(job_of(client.voiceprint(media), *own))
    assert set(sample) == {"voiceprint"} and 0 < len(sample["voiceprint"]) <= 20000, sample
    other = client.retrieve(job_of(client.voiceprint(media, model=None)))
    for exclusive in (True, False):
        found = client.retrieve(job_of(client.identify(
            media, {"Sam": sample["voiceprint"], "Rick": other["voiceprint"]}, exclusive_matching=exclusive, exclusive=True), *own))
        assert set(found) == {"diarization", "exclusiveDiarization", "identification", "voiceprints"}, found
        for turn in is_turns(found["identification"], "diarizationSpeaker", "match"):
            assert turn["speaker"] == (turn["match"] or turn["diarizationSpeaker"]), turn
        matches = [v["match"] for v in found["voiceprints"] if v["match"]]
        assert matches and (not exclusive or len(set(matches)) == len(matches)), found["voiceprints"]
        assert all(set(v["confidence"]) == {"Sam", "Rick"} for v in found["voiceprints"]), found["voiceprints"]
    nobody = client.retrieve(job_of(client.identify(media, {"Sam": sample["voiceprint"]}, threshold=100.0, transcription=None), *own))
    assert [v["match"] for v in nobody["voiceprints"]] == [None] * len(nobody["voiceprints"]), nobody["voiceprints"]

    for fields, field in (
            ({"numSpeakers": 0}, "numSpeakers"), ({"minSpeakers": 3, "maxSpeakers": 2}, "minSpeakers"),
            ({"numSpeakers": "2"}, "numSpeakers"), ({"exclusive": 1}, "exclusive"), ({"url": None}, "url"), ({"url": audio}, "url"),
            ({"url": "https://example.com/a.wav"}, "url"), ({"webhook": "http://example.com"}, "webhook")):
        error, _ = refused(400, client.diarize, media, **fields)
        assert error["message"] and error["errors"][0]["field"] == field and error["errors"][0]["message"], error
    error, _ = refused(400, client.identify, media, {"speaker_1": sample["voiceprint"]})
    assert error["errors"][0]["field"] == "voiceprints[0].label", error
    error, _ = refused(404, client.get, "/jobs/00000000-0000-4000-8000-000000000000")
    assert error["message"], error
    many = client.retrieve(job_of(client.diarize(media, minSpeakers=25), *own, "minSpeakers is 25"))
    assert "could be told apart" in many["warning"], many

    with tempfile.NamedTemporaryFile(suffix=".wav") as empty:
        nothing = client.upload(empty.name)
        renamed = client.upload(empty.name, "media://a/b-c_d.wav")
    assert nothing == "media://d41d8cd98f00b204e9800998ecf8427e"
    for location, reason in ((nothing, "empty"), (renamed, "empty"), ("media://gone", "Nothing is stored")):
        try:
            client.retrieve(job_of(client.diarize(location), *own))
            raise AssertionError("no failure of " + location)
        except JobFailed as e:
            assert reason in str(e), e

    server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = "http://127.0.0.1:%d/done" % server.server_port
    job = job_of(client.diarize(media, webhook=address, webhookStatusOnly=None), *own)
    for retry in (None, "1"):
        headers, body = webhook()
        assert body["jobId"] == job and body["status"] == "succeeded" and body["output"] == plain, body
        assert headers["x-retry-num"] == retry and headers["x-retry-reason"] == (retry and "http_503"), headers
    job = job_of(client.voiceprint(nothing, webhook=address, webhookStatusOnly=True), *own)
    assert webhook()[1] == {"jobId": job, "status": "failed"}
    server.shutdown()

    listed, cursor = [], ""
    while cursor is not None:
        answer = requests.get(base + "/v2/jobs?limit=3" + cursor, headers=client.headers, timeout=60).json()
        listed += [item["id"] for item in answer["items"]]
        cursor = answer["nextCursor"] and "&cursor=" + answer["nextCursor"]
    assert listed[0] == job and len(set(listed)) == len(listed) > 10, listed

    created = 0
    try:
        while created <= 100:
            client.post("/voiceprint", {"url": "media://gone"})
            created += 1
        raise AssertionError("no limit")
    except requests.HTTPError as e:
        assert e.response.status_code == 429 and int(e.response.headers["Retry-After"]) > 0 and e.response.headers["X-RateLimit-Limit"] == "100", e.response.headers
        assert e.response.json()["message"]
    assert created > 90, created


base, ca, audio = sys.argv[1:]
os.environ["REQUESTS_CA_BUNDLE"] = ca
check(base, audio)
print("ok")
