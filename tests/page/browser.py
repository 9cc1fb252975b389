"""A headless Chromium for the tests of the page, driven over its debugging pipe (Chrome DevTools Protocol)."""
import base64, json, os, shutil, subprocess, tempfile, time

NAMES = ('chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome')


def find():
    for name in NAMES:
        path = shutil.which(name)
        if path: return path
    return None


class Browser:
    def __init__(self, width=1400, height=900):
        self.home = tempfile.mkdtemp(prefix='margay-page-')
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()
        flags = ['--headless', '--disable-gpu', '--no-first-run', '--hide-scrollbars', '--disable-extensions', '--mute-audio',
                 '--disable-dev-shm-usage', '--no-sandbox', '--remote-debugging-pipe', f'--user-data-dir={self.home}', 'about:blank']
        self.process = subprocess.Popen(['bash', '-c', f'exec "$@" 3<&{to_read} 4>&{from_write}', 'bash', find(), *flags], pass_fds=(to_read, from_write),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read), os.close(from_write)
        self.to, self.answers, self.rest, self.n = os.fdopen(to_write, 'wb', 0), from_read, b'', 0
        self.errors, self.requests, self.session = [], [], None
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'): self.call(domain + '.enable')
        self.size(width, height)

    def call(self, method, **params):
        self.n += 1
        message = {'id': self.n, 'method': method, 'params': params}
        if self.session: message['sessionId'] = self.session
        self.to.write(json.dumps(message).encode() + b'\0')
        while True:
            answer = self.next_message()
            if answer.get('id') == self.n:
                if 'error' in answer: raise RuntimeError(f'{method}: {answer["error"]}')
                return answer['result']
            self.note(answer)

    def next_message(self):
        while b'\0' not in self.rest:
            more = os.read(self.answers, 1 << 20)
            if not more: raise RuntimeError('the browser has gone')
            self.rest += more
        one, self.rest = self.rest.split(b'\0', 1)
        return json.loads(one)

    def note(self, event):
        method, params = event.get('method'), event.get('params', {})
        if method == 'Runtime.exceptionThrown': self.errors.append(json.dumps(params['exceptionDetails'].get('exception', params['exceptionDetails']))[:600])
        if method == 'Log.entryAdded' and params['entry']['level'] == 'error': self.errors.append(params['entry']['text'])
        if method == 'Network.requestWillBeSent': self.requests.append(params['request']['url'])

    def size(self, width, height):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, kind='', scheme='light'):
        self.call('Emulation.setEmulatedMedia', media=kind, features=[{'name': 'prefers-color-scheme', 'value': scheme}])

    def eval(self, text):
        """The value of an expression of JavaScript, as JSON carries it."""
        r = self.call('Runtime.evaluate', expression=text, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in r: raise RuntimeError(f'{text}: {r["exceptionDetails"]["exception"].get("description")}')
        return r['result'].get('value')

    def wait(self, text, seconds=20):
        """Until the expression holds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.eval(text): return
            time.sleep(0.02)
        raise RuntimeError(f'not within {seconds} s: {text}; errors of the page: {self.errors}')

    def open(self, path, hash=''):
        """Opens a file; returns the milliseconds until the page says that it is ready."""
        self.call('Page.navigate', url='about:blank')
        self.call('Page.navigate', url=f'file://{os.path.abspath(path)}{hash}')
        self.wait('document.documentElement?.dataset.ready === "yes"')
        return self.eval('performance.now()')

    def go(self, hash):
        self.eval(f'location.hash = {json.dumps(hash)}')
        self.settle()

    def settle(self):
        self.eval('new Promise((done) => requestAnimationFrame(() => setTimeout(done, 30)))')

    def click(self, selector):
        at = self.eval(f'(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null; e.scrollIntoView({{block: "center"}});'
                       'const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()')
        if not at: raise RuntimeError(f'nothing to click: {selector}')
        for kind in ('mousePressed', 'mouseReleased'):
            self.call('Input.dispatchMouseEvent', type=kind, x=at[0], y=at[1], button='left', clickCount=1)
        self.settle()

    def key(self, key, code=None, number=0):
        text = key if len(key) == 1 else '\r' if key == 'Enter' else ''
        extra = {'text': text} if text else {}
        self.call('Input.dispatchKeyEvent', type='keyDown', key=key, code=code or key, windowsVirtualKeyCode=number or (13 if key == 'Enter' else 9 if key == 'Tab' else 27 if key == 'Escape' else 0), **extra)
        self.call('Input.dispatchKeyEvent', type='keyUp', key=key, code=code or key)
        self.settle()

    def type(self, text):
        self.call('Input.insertText', text=text)
        self.settle()

    def shot(self, path, whole=False):
        clip = {}
        if whole:
            size = self.call('Page.getLayoutMetrics')['cssContentSize']
            clip = {'captureBeyondViewport': True, 'clip': {'x': 0, 'y': 0, 'width': size['width'], 'height': min(size['height'], 6000), 'scale': 1}}
        with open(path, 'wb') as f: f.write(base64.b64decode(self.call('Page.captureScreenshot', format='png', **clip)['data']))

    def pdf(self):
        return base64.b64decode(self.call('Page.printToPDF', printBackground=True)['data'])

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.answers)
        self.to.close()
        shutil.rmtree(self.home, ignore_errors=True)
