//! Answers to the requests of a profile's page: the page itself, the timeline, chunks of the trace,
//! selections, code.

use super::server::{AnswerRequests, HttpAnswer};
use crate::code::KernelCode;
use crate::page::places;
use kerntune_analyze::timeline::overview;
use kerntune_analyze::TraceFile;
use kerntune_command::ProfileSubject;
use kerntune_profile::Profile;
use kerntune_report::html::profile::{packed, ChunkStorage, PageAnswers, TraceSums, TraceTimeline, BINS};
use kerntune_tune::run_files::RunFiles;
use kerntune_work::{interrupt, WorkDir};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

type AnswerError = Box<dyn std::error::Error>;

/// Answers the page's requests from a profile and its trace.
pub struct ProfileServer<'a> {
    work: &'a WorkDir,
    profile: &'a Profile,
    region: Option<&'a str>,
    files: Option<&'a RunFiles>,
    answers: Mutex<PageAnswers>,
    /// The encoded timeline, or an error; `None` until it has been read.
    timeline: Mutex<Option<Result<Vec<u8>, String>>>,
    /// Number of events read so far for the timeline.
    read: AtomicU64,
    /// Sums of the trace by chunk, for selections; or an error. `None` without a trace.
    sums: Option<Result<TraceSums<'a>, String>>,
    /// Opened when code is requested for the first time.
    code: OnceLock<Result<KernelCode<'a>, String>>,
}

impl<'a> ProfileServer<'a> {
    pub fn new(
        of: &'a ProfileSubject,
        region: Option<&'a str>,
        answers: PageAnswers,
        files: Option<&'a RunFiles>,
    ) -> Self {
        let sums = files.map(|files| {
            let trace = TraceFile::open(&files.trace, &files.recording).map_err(|error| error.to_string())?;
            TraceSums::new(&of.profile, region, trace).map_err(|error| error.to_string())
        });
        Self {
            work: &of.work,
            profile: &of.profile,
            region,
            files,
            answers: Mutex::new(answers),
            timeline: Mutex::new(None),
            read: AtomicU64::new(0),
            sums,
            code: OnceLock::new(),
        }
    }

    fn answers(&self) -> MutexGuard<'_, PageAnswers> {
        lock(&self.answers)
    }

    fn read_timeline(&self, files: &RunFiles) -> Result<Vec<u8>, AnswerError> {
        let trace = TraceFile::open(&files.trace, &files.recording)?;
        let overview = overview(&trace, BINS, &mut |events| {
            self.read.store(events, Ordering::Relaxed);
            match interrupt::is_set() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        let places = places(&trace, self.profile, self.region)?;
        let chunks = vec![ChunkStorage::Served; trace.chunks()];
        let timeline =
            TraceTimeline { recording: &files.recording, wide: trace.wide, overview, places, chunks };
        Ok(self.answers().timeline(self.profile, &timeline)?)
    }

    fn overview(&self) -> HttpAnswer {
        match &*lock(&self.timeline) {
            Some(Ok(bytes)) => HttpAnswer::new("application/octet-stream", bytes.clone()),
            Some(Err(error)) => HttpAnswer::text(500, error),
            None => {
                let (read, all) = (self.read.load(Ordering::Relaxed), self.profile.manifest.events.max(1));
                HttpAnswer::text(202, &format!("Reading the trace: {} % …", read.min(all) * 100 / all))
            }
        }
    }

    fn chunk(&self, question: &str) -> Result<HttpAnswer, AnswerError> {
        let (Some(number), Some(files)) = (number(question, "n"), self.files) else {
            return Ok(HttpAnswer::text(400, "chunk?n=NUMBER"));
        };
        let trace = TraceFile::open(&files.trace, &files.recording)?;
        let bytes = trace.chunk_bytes(usize::try_from(number)?)?;
        Ok(HttpAnswer::new("application/octet-stream", bytes))
    }

    /// Returns a function's source and code, or a sentence that explains why it has none.
    fn code(&self, question: &str) -> Result<HttpAnswer, AnswerError> {
        let Some(row) = number(question, "f").and_then(|row| u32::try_from(row).ok()) else {
            return Ok(HttpAnswer::text(400, "code?f=ROW"));
        };
        let code =
            self.code.get_or_init(|| KernelCode::open(self.work, self.profile).map_err(|none| none.why));
        match code.as_ref().map_err(Clone::clone).and_then(|code| code.function(row)) {
            Ok(code) => Ok(HttpAnswer::new("application/octet-stream", packed(&code)?)),
            Err(why) => Ok(HttpAnswer::text(200, &why)),
        }
    }

    fn select(&self, question: &str) -> Result<HttpAnswer, AnswerError> {
        let (Some(from), Some(to), Some(sums)) =
            (number(question, "from"), number(question, "to"), &self.sums)
        else {
            return Ok(HttpAnswer::text(400, "select?from=NS&to=NS"));
        };
        let sums = sums.as_ref().map_err(Clone::clone)?;
        let selected = sums.select(from, to, &interrupt::is_set)?;
        let bytes = self.answers().selected(sums, &selected)?;
        Ok(HttpAnswer::new("application/octet-stream", bytes))
    }

    /// Computes the sums of all chunks in the background.
    fn count(&self) {
        if let Some(Ok(sums)) = &self.sums {
            // A damaged chunk is reported by the selection that needs it.
            let _ = sums.prepare(&mut |_| match interrupt::is_set() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
        }
    }
}

impl AnswerRequests for ProfileServer<'_> {
    fn answer(&self, path: &str, question: &str) -> HttpAnswer {
        let answer = match path {
            "" => Ok(HttpAnswer::new("text/html; charset=utf-8", self.answers().page().as_bytes().to_vec())),
            "overview" => Ok(self.overview()),
            "chunk" => self.chunk(question),
            "code" => self.code(question),
            "select" => self.select(question),
            _ => Ok(HttpAnswer::text(404, "there is no such page here")),
        };
        answer.unwrap_or_else(|error| HttpAnswer::text(500, &error.to_string()))
    }

    fn work(&self) {
        let Some(files) = self.files else { return };
        std::thread::scope(|scope| {
            scope.spawn(|| self.count());
            let timeline = self.read_timeline(files).map_err(|error| error.to_string());
            *lock(&self.timeline) = Some(timeline);
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number with this name in a query such as `a=1&b=2`.
fn number(question: &str, name: &str) -> Option<u64> {
    let mut pairs = question.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name)?.1.parse().ok()
}
