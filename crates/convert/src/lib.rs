//! Foreign formats in and out, one file each
