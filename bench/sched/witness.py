"""Who had the device, seen from outside of the scheduler: samples (seconds, [ns each program has used so far])."""
import glob, threading, time


class Processors(threading.Thread):
    """Processor time of the threads that run each process' kernels (named "margay worker"): from /proc, ten times a second."""
    def __init__(self, out, names):
        super().__init__(daemon=True)
        self.out, self.names, self.samples, self.seen, self.over = out, names, [], {n: {} for n in names}, False

    def look(self, name):
        for ctl in glob.glob(f'{self.out}/{name}/ctl.*'):
            pid = ctl.rsplit('.', 1)[1]
            for task in glob.glob(f'/proc/{pid}/task/*'):
                try:
                    if open(task + '/comm').read() == 'margay worker\n':
                        self.seen[name][task] = int(open(task + '/schedstat').read().split()[0])
                except (OSError, ValueError, IndexError):
                    pass
        return sum(self.seen[name].values())

    def run(self):
        while not self.over:
            self.samples.append((time.monotonic(), [self.look(n) for n in self.names]))
            time.sleep(0.1)

    def stop(self):
        self.over = True
        self.join()
        return self.samples


def spans(files):
    """The union of CTA spans by %globaltimer, which the programs record themselves: lines of a tenth of a second each."""
    used = [dict(map(int, line.split()) for line in open(f)) for f in files]
    total, samples = [0] * len(files), []
    for tenth in range(min(min(u) for u in used), max(max(u) for u in used) + 2):
        samples.append((tenth / 10, list(total)))
        total = [t + u.get(tenth, 0) for t, u in zip(total, used)]
    return samples


def together(samples):
    """Those from half a second after the last program began to use the device until the first one stopped."""
    s = [x for x in samples if all(x[1])]
    end = min((next(i for i in range(len(s)) if s[i][1][k] == s[-1][1][k]) for k in range(len(s[0][1]))), default=0) if s else 0
    return [x for x in s[:end] if x[0] >= s[0][0] + 0.5]


def used(a, b):
    return [y - x for x, y in zip(a[1], b[1])]


def seconds(samples):
    """What each program used in every second, in steps of a tenth."""
    j = 0
    for i, s in enumerate(samples):
        while j < len(samples) and samples[j][0] < s[0] + 0.999:
            j += 1
        if j < len(samples):
            yield used(s, samples[j])
