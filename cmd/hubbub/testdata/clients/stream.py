"""A client of the service in Python, with the library websockets.

It creates a stream, sends raw audio (pcm_f32le, 16 kHz, mono) in real time, and
prints the messages as they come, one a line; on the last line how it ended.

usage: stream.py BASE_URL CA_FILE AUDIO     (the key is in API_KEY)
"""
import asyncio
import json
import os
import ssl
import sys
import urllib.request

import websockets

CHUNK = 6400  # bytes: 100 ms


def call(method, path, body=None):
    request = urllib.request.Request(
        base + path, method=method, data=body,
        headers={"Authorization": "Bearer " + os.environ["API_KEY"], "Content-Type": "application/json"})
    with urllib.request.urlopen(request, context=tls, timeout=60) as response:
        return json.load(response)


async def send(ws):
    loop = asyncio.get_running_loop()
    began = loop.time()
    with open(audio, "rb") as file:
        n = 0
        while len(chunk := file.read(CHUNK)) == CHUNK:
            await asyncio.sleep(began + n * 0.1 - loop.time())
            await ws.send(chunk)
            n += 1
    await ws.send(json.dumps({"type": "end_of_stream"}))


async def stream():
    live = call("POST", "/v1/live", b"{}")
    async with websockets.connect(live["url"], ssl=tls) as ws:
        sending = asyncio.create_task(send(ws))
        async for message in ws:
            print(message, flush=True)
        await sending
        status = "running"
        while status == "running":
            status = call("GET", "/v1/live/" + live["id"])["status"]
        print(json.dumps({"id": live["id"], "close": ws.close_code, "status": status}))


base, ca, audio = sys.argv[1:]
tls = ssl.create_default_context(cafile=ca)
asyncio.run(stream())
