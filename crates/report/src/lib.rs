//! Profile or comparison to text tables and HTML
