//! Profile of call paths, which have no times.

use super::{begin, finish, moment, weights, FirefoxMetadata, FrameCategories};
use crate::stacks::{CallStacks, FigureUnit};
use fxprof_processed_profile::{CpuDelta, Frame, FrameFlags, FrameInfo, StackHandle};
use kerntune_profile::PathKind;
use serde_json::Value;

/// Makes a profile with a row for all threads of a name, and for each path as many samples as its
/// weight requires. They follow each other in no order of time.
///
/// # Errors
/// A value that JSON cannot hold; no such case is known.
pub fn of_paths(stacks: &CallStacks, about: &FirefoxMetadata<'_>) -> serde_json::Result<Value> {
    let mut profile = begin(about);
    let categories = FrameCategories::of(&mut profile);
    let process = profile.add_process("call paths (in no order of time)", 0, moment(0));
    // By path: its row, and the stack that ends in it.
    let mut rows = Vec::with_capacity(stacks.paths.len());
    let mut places: Vec<Option<StackHandle>> = Vec::with_capacity(stacks.paths.len());
    let mut ends: Vec<u64> = Vec::new();
    for path in &stacks.paths {
        let Some(frame) = stacks.frames.get(path.frame) else { continue };
        let (row, at) = match path.parent {
            Some(parent) => rows[parent],
            None => {
                let thread = profile.add_thread(process, 0, moment(0), false);
                profile.set_thread_name(thread, &frame.name);
                ends.push(0);
                (thread, ends.len() - 1)
            }
        };
        rows.push((row, at));
        let category = match frame.kind {
            PathKind::User => categories.user,
            PathKind::Function if frame.is_user => categories.user,
            PathKind::Function => categories.kernel,
            PathKind::Interrupt => categories.interrupt,
            _ => categories.other,
        };
        let label = Frame::Label(profile.intern_string(&frame.name));
        let info = FrameInfo { frame: label, category_pair: category.into(), flags: FrameFlags::empty() };
        let handle = profile.intern_frame(row, info);
        let parent = path.parent.and_then(|parent| places[parent]);
        let stack = profile.intern_stack(row, parent, handle);
        places.push(Some(stack));
        let (weight, each) = match stacks.unit {
            FigureUnit::Sampled(each) => (stacks.unit.samples_in(path.figures.own).unwrap_or(0), each.get()),
            _ => (path.figures.own, 1),
        };
        for weight in weights(weight) {
            let length = (weight as u64).saturating_mul(each);
            profile.add_sample(row, moment(ends[at]), Some(stack), CpuDelta::from_micros(length), weight);
            ends[at] = ends[at].saturating_add(length);
        }
    }
    finish(&profile, about)
}
