//! Relink of a kernel with its functions in another order. No object is compiled.

use crate::kernels::store::{add_label, KIND, LINKED_FROM, MANIFEST};
use crate::link::borrowed::BorrowedObjects;
use crate::link::moved_sources;
use crate::vmlinux::image::checked_bytes;
use crate::{Error, FunctionOrder, Kernel, KernelManifest, Result, Symbols};
use kerntune_work::{write_atomic, write_json, Key, Progress, WorkDir};
use std::time::Instant;

/// File beside the manifest with the order of a relinked kernel.
pub(crate) const ORDER: &str = "order.txt";

/// Links `kernel` and its modules with the functions of `order` first. It must have been built
/// [`movable`](crate::BuildRequest::movable), and have its objects.
///
/// The result gets the label, and the recipe as its maker. Its id is a hash over kernel and order;
/// an existing result is returned.
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
    let mut key = Key::new("relink/3", "")
        .field(LINKED_FROM, &of.id)
        .field("images", kernel.content()?)
        .field("order", order.text());
    if kernel.has_modules() {
        key = key.field("modules", "linked too");
    }
    let id = key.id();
    let staged = work.stage(KIND, &key)?;
    if let Some(dir) = staged.already() {
        return add_label(work, Kernel::load(&dir)?, label);
    }
    staged.clear()?;
    let started = Instant::now();
    let objects = BorrowedObjects::borrow(work, kernel)?;
    let log = staged.path().join("build.log");
    objects.link(kernel, Some(order), label, &log, progress)?;
    objects.copy_outputs(kernel, staged.path())?;
    if kernel.has_modules() {
        objects.install_modules(kernel, (order, label), (staged.path(), &log), progress)?;
    }
    drop(objects);

    let partial = staged.path();
    let linked = Symbols::load(&partial.join("vmlinux"))?;
    moved_sources::transfer(kernel, &linked, partial)?;
    write_atomic(&partial.join(ORDER), order.text().as_bytes())?;
    let manifest = KernelManifest {
        order_id: Some(order.id()),
        text_bytes: linked.text_bytes(),
        image_bytes: checked_bytes(of.arch, partial)?,
        ..of.derived(id, label, recipe, started)
    };
    write_json(&partial.join(MANIFEST), &manifest)?;
    Kernel::load(&staged.publish()?)
}

fn not_movable(kernel: &Kernel) -> Error {
    Error::NotMovable { kernel: kernel.manifest.label.clone(), id: kernel.manifest.id.clone() }
}
