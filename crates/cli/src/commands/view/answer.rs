//! What the page asks for: itself, the timeline, chunks of the trace, selections.

use super::server::{Answer, Answering};
use crate::code::CodeOf;
use crate::page::places;
use crate::subject::Subject;
use kerntune_analyze::timeline::overview;
use kerntune_analyze::TraceFile;
use kerntune_profile::Profile;
use kerntune_report::html::profile::{packed, Answers, Embedded, Sums, Timeline, BINS};
use kerntune_tune::run_files::RunFiles;
use kerntune_work::{interrupt, WorkDir};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

type Problem = Box<dyn std::error::Error>;

/// Has the profile and its trace.
pub struct Answerer<'a> {
    work: &'a WorkDir,
    profile: &'a Profile,
    region: Option<&'a str>,
    files: Option<&'a RunFiles>,
    answers: Mutex<Answers>,
    /// Once it has been read, or why it cannot be.
    timeline: Mutex<Option<Result<Vec<u8>, String>>>,
    /// Events of it that were read.
    read: AtomicU64,
    /// The trace, counted chunk by chunk; or why it cannot be.
    sums: Option<Result<Sums<'a>, String>>,
    /// Once a function's code was asked for.
    code: OnceLock<Result<CodeOf<'a>, String>>,
}

impl<'a> Answerer<'a> {
    pub fn new(
        of: &'a Subject,
        region: Option<&'a str>,
        answers: Answers,
        files: Option<&'a RunFiles>,
    ) -> Self {
        let sums = files.map(|files| {
            let trace = TraceFile::open(&files.trace, &files.recording).map_err(|error| error.to_string())?;
            Sums::new(&of.profile, region, trace).map_err(|error| error.to_string())
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

    fn answers(&self) -> MutexGuard<'_, Answers> {
        lock(&self.answers)
    }

    fn read_timeline(&self, files: &RunFiles) -> Result<Vec<u8>, Problem> {
        let trace = TraceFile::open(&files.trace, &files.recording)?;
        let overview = overview(&trace, BINS, &mut |events| {
            self.read.store(events, Ordering::Relaxed);
            match interrupt::is_set() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        let places = places(&trace, self.profile, self.region)?;
        let chunks = vec![Embedded::Served; trace.chunks()];
        let timeline = Timeline { recording: &files.recording, wide: trace.wide, overview, places, chunks };
        Ok(self.answers().timeline(self.profile, &timeline)?)
    }

    fn overview(&self) -> Answer {
        match &*lock(&self.timeline) {
            Some(Ok(bytes)) => Answer::new("application/octet-stream", bytes.clone()),
            Some(Err(error)) => Answer::text(500, error),
            None => {
                let (read, all) = (self.read.load(Ordering::Relaxed), self.profile.manifest.events.max(1));
                Answer::text(202, &format!("Reading the trace: {} % …", read.min(all) * 100 / all))
            }
        }
    }

    fn chunk(&self, question: &str) -> Result<Answer, Problem> {
        let (Some(number), Some(files)) = (number(question, "n"), self.files) else {
            return Ok(Answer::text(400, "chunk?n=NUMBER"));
        };
        let trace = TraceFile::open(&files.trace, &files.recording)?;
        let bytes = trace.chunk_bytes(usize::try_from(number)?)?;
        Ok(Answer::new("application/octet-stream", bytes))
    }

    /// A function's source and code, or a sentence that says why there is none.
    fn code(&self, question: &str) -> Result<Answer, Problem> {
        let Some(row) = number(question, "f").and_then(|row| u32::try_from(row).ok()) else {
            return Ok(Answer::text(400, "code?f=ROW"));
        };
        let code = self.code.get_or_init(|| CodeOf::open(self.work, self.profile).map_err(|none| none.why));
        match code.as_ref().map_err(Clone::clone).and_then(|code| code.function(row)) {
            Ok(code) => Ok(Answer::new("application/octet-stream", packed(&code)?)),
            Err(why) => Ok(Answer::text(200, &why)),
        }
    }

    fn select(&self, question: &str) -> Result<Answer, Problem> {
        let (Some(from), Some(to), Some(sums)) =
            (number(question, "from"), number(question, "to"), &self.sums)
        else {
            return Ok(Answer::text(400, "select?from=NS&to=NS"));
        };
        let sums = sums.as_ref().map_err(Clone::clone)?;
        let selected = sums.select(from, to, &interrupt::is_set)?;
        let bytes = self.answers().selected(sums, &selected)?;
        Ok(Answer::new("application/octet-stream", bytes))
    }

    /// Counts the chunks that no selection has asked for yet.
    fn count(&self) {
        if let Some(Ok(sums)) = &self.sums {
            // Damage is said to whom it concerns: the selection that needs the chunk.
            let _ = sums.prepare(&mut |_| match interrupt::is_set() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
        }
    }
}

impl Answering for Answerer<'_> {
    fn answer(&self, path: &str, question: &str) -> Answer {
        let answer = match path {
            "" => Ok(Answer::new("text/html; charset=utf-8", self.answers().page().as_bytes().to_vec())),
            "overview" => Ok(self.overview()),
            "chunk" => self.chunk(question),
            "code" => self.code(question),
            "select" => self.select(question),
            _ => Ok(Answer::text(404, "there is no such page here")),
        };
        answer.unwrap_or_else(|error| Answer::text(500, &error.to_string()))
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

/// The number of that name in `a=1&b=2`.
fn number(question: &str, name: &str) -> Option<u64> {
    let mut pairs = question.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name)?.1.parse().ok()
}
