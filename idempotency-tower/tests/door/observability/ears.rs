//! Hears everything that is logged and counted on one thread, and finds nothing in it that is the caller's own.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, LocalRecorderGuard, Metadata, Recorder, SharedString, Unit,
};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tracing::{level_filters::LevelFilter, subscriber::DefaultGuard};
use tracing_subscriber::fmt::{MakeWriter, format::FmtSpan};

use super::{CANARY, CAUSE};

/// How far each metric moved, by name and labels; of a histogram, how many values it took.
type Moved = BTreeMap<String, i64>;

/// Everything on this thread, from its opening on. Dropped, it has been searched for what must not be there.
pub(super) struct Ears {
    written: Written,
    counted: Snapshotter,
    described: Described,
    _logging: DefaultGuard,
    _counting: LocalRecorderGuard<'static>,
}

impl Ears {
    pub(super) fn open() -> Self {
        let written = Written::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_ansi(false)
            .without_time()
            .with_writer(written.clone())
            .finish();
        let recorder = DebuggingRecorder::new();
        let counted = recorder.snapshotter();
        let described = Described::default();
        let recorder = Box::leak(Box::new(Describing { recorder, described: described.clone() }));
        Self {
            written,
            counted,
            described,
            _logging: tracing::subscriber::set_default(subscriber),
            _counting: metrics::set_default_local_recorder(recorder),
        }
    }

    pub(super) fn log(&self) -> Log {
        Log(self.written.text())
    }

    /// Waits until `text` is logged.
    pub(super) async fn heard(&self, text: &str) {
        while !self.written.text().contains(text) {
            tokio::task::yield_now().await;
        }
    }

    /// Takes how far the metrics moved since the last time.
    pub(super) fn drain(&self) -> Moved {
        let taken = self.counted.snapshot().into_vec().into_iter();
        taken
            .map(|(key, _, _, value)| {
                let (_, key) = key.into_parts();
                let labels: Vec<_> =
                    key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
                let labels =
                    if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
                let moved = match value {
                    DebugValue::Counter(count) => i64::try_from(count).unwrap(),
                    DebugValue::Gauge(by) => format!("{by}").parse().unwrap(),
                    DebugValue::Histogram(values) => {
                        assert!(
                            values.iter().all(|took| (0.0..60.0).contains(&took.0)),
                            "seconds: {values:?}"
                        );
                        i64::try_from(values.len()).unwrap()
                    }
                };
                (format!("{}{labels}", key.name()), moved)
            })
            .collect()
    }

    /// Asserts that these moved since the last time, and no others but for the durations of store calls.
    pub(super) fn moved(&self, expected: &[(&str, i64)]) {
        let moved = self.drain();
        assert!(moved.keys().all(|name| !name.contains(CANARY)), "{moved:?}");
        let mut moved: Moved = moved.into_iter().filter(|(_, by)| *by != 0).collect();
        let calls = moved.extract_if(.., |name, _| name.starts_with("idempotency.store.duration")).count();
        let claimed = expected.iter().any(|(name, _)| name.starts_with("idempotency.claims"));
        assert!(calls > 0 || !claimed, "no call of the store was timed");
        let expected: Moved = expected.iter().map(|(name, by)| ((*name).to_owned(), *by)).collect();
        assert_eq!(moved, expected);
    }

    /// The metrics that were described, and their units.
    pub(super) fn described(&self) -> BTreeMap<String, String> {
        self.described.0.lock().unwrap().clone()
    }
}

impl Drop for Ears {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let text = self.written.text();
        for own in [CANARY, CAUSE, "Bearer", "sid=", "card"] {
            let found = text.lines().find(|line| line.contains(own));
            assert_eq!(found, None, "{own:?} is in the log");
        }
    }
}

/// What was logged.
pub(super) struct Log(String);

impl Log {
    /// How many lines have `text`.
    pub(super) fn count(&self, text: &str) -> usize {
        self.0.lines().filter(|line| line.contains(text)).count()
    }

    /// The first line with `text`, without the blanks before its level.
    pub(super) fn line(&self, text: &str) -> String {
        let line = self.0.lines().find(|line| line.contains(text));
        line.unwrap_or_else(|| panic!("nobody logged {text:?}:\n{}", self.0)).trim_start().to_owned()
    }
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Written {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[derive(Clone, Default)]
struct Described(Arc<Mutex<BTreeMap<String, String>>>);

impl Described {
    fn note(&self, key: &KeyName, unit: Option<Unit>) {
        let unit = unit.map_or("none", |unit| unit.as_str());
        self.0.lock().unwrap().insert(key.as_str().to_owned(), unit.to_owned());
    }
}

/// Keeps the descriptions, which the recorder it hands all else to keeps only of metrics that moved.
struct Describing {
    recorder: DebuggingRecorder,
    described: Described,
}

impl Recorder for Describing {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.described.note(&key, unit);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.described.note(&key, unit);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.described.note(&key, unit);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        self.recorder.register_counter(key, metadata)
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.recorder.register_gauge(key, metadata)
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        self.recorder.register_histogram(key, metadata)
    }
}
