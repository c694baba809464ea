//! The wire format between the recorder and its readers
