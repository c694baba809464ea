//! Text into HTML.

use std::fmt::{self, Display, Write};

/// Writes any text so that it is only text, in content and in quoted attributes.
pub(crate) struct Escaped<T>(pub T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(Escaper(f), "{}", self.0)
    }
}

struct Escaper<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaper<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.write_str("&amp;")?,
                '<' => self.0.write_str("&lt;")?,
                '>' => self.0.write_str("&gt;")?,
                '"' => self.0.write_str("&quot;")?,
                '\'' => self.0.write_str("&#39;")?,
                // Not allowed in HTML, and of no use to a reader.
                c if c.is_control() && c != '\n' && c != '\t' => self.0.write_char('\u{fffd}')?,
                c => self.0.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A minus sign as wide as the plus sign, in place of the hyphen before a figure.
pub(crate) fn minus(figure: &str) -> String {
    match figure.strip_prefix('-') {
        Some(rest) => format!("\u{2212}{rest}"),
        None => figure.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let nasty = "</td><script>alert(\"1\" & '2')\x1b";
        let escaped = Escaped(nasty).to_string();
        assert_eq!(escaped, "&lt;/td&gt;&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)\u{fffd}");
        assert_eq!(minus("-3.1 %"), "\u{2212}3.1 %");
    }
}
