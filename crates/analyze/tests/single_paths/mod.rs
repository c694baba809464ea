//! Paths of hand-made traces, entry by entry, and of random ones checked against an independent
//! model.

mod by_hand;
mod folding;
mod model;
mod sim;
