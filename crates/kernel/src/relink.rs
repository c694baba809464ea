//! A kernel linked again with its functions in another order: no object is compiled.

use crate::borrowed::Objects;
use crate::image::checked_bytes;
use crate::store::{known_as, KIND, LINKED_FROM, MANIFEST};
use crate::{moved_sources, Error, FunctionOrder, Kernel, KernelManifest, Result, Symbols};
use kerntune_work::{write_atomic, write_json, Key, Progress, WorkDir};
use std::time::Instant;

/// The order that a relinked kernel was linked in, beside its manifest.
pub(crate) const ORDER: &str = "order.txt";

/// Links `kernel` with the functions of `order` first. It must have been built
/// [`movable`](crate::BuildRequest::movable), and have its objects.
///
/// It is listed under a label and as made by a recipe. The result is named by the kernel and the order; what is there
/// already is not made again.
///
/// # Errors
/// [`Error::NotMovable`]; a failed link, with the first error of the log.
pub fn relink(
    work: &WorkDir,
    kernel: &Kernel,
    order: &FunctionOrder,
    (label, recipe): (&str, &str),
    progress: &dyn Progress,
) -> Result<Kernel> {
    let of = &kernel.manifest;
    if !of.movable {
        return Err(not_movable(kernel));
    }
    let key = Key::new("relink/3", "")
        .field(LINKED_FROM, &of.id)
        .field("images", kernel.content()?)
        .field("order", order.text());
    let id = key.id();
    let staged = work.stage(KIND, &key)?;
    if let Some(dir) = staged.already() {
        return known_as(work, Kernel::load(&dir)?, label);
    }
    staged.clear()?;
    let started = Instant::now();
    let objects = Objects::borrow(work, kernel)?;
    objects.link(kernel, Some(order), label, &staged.path().join("build.log"), progress)?;
    objects.take_outputs(kernel, staged.path())?;
    drop(objects);

    let partial = staged.path();
    let linked = Symbols::load(&partial.join("vmlinux"))?;
    moved_sources::carry(kernel, &linked, partial)?;
    write_atomic(&partial.join(ORDER), order.text().as_bytes())?;
    let manifest = KernelManifest {
        order_id: Some(order.id()),
        text_bytes: linked.text_bytes(),
        image_bytes: checked_bytes(of.arch, partial)?,
        ..of.remade(id, label, recipe, started)
    };
    write_json(&partial.join(MANIFEST), &manifest)?;
    Kernel::load(&staged.publish()?)
}

fn not_movable(kernel: &Kernel) -> Error {
    Error::NotMovable { kernel: kernel.manifest.label.clone(), id: kernel.manifest.id.clone() }
}
