//! Paths of hand-made traces, entry by entry, and of random ones against an independent model.

mod by_hand;
mod folding;
mod model;
mod sim;
