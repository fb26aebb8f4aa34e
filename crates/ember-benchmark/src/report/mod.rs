//! Output formats of results, for users and programs.

pub(super) mod csv;
pub(super) mod html;
pub(super) mod json;
mod svg;
pub(super) mod text;

/// Formats rows as a Markdown table, which is also readable as plain text; all columns except the first `left` ones are
/// numbers.
pub(super) fn table(rows: &[Vec<String>], left: usize) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            text.push_str(&if column < left {
                format!("| {cell:<width$} ")
            } else {
                format!("| {cell:>width$} ")
            });
        }
        text.push_str("|\n");
        if index == 0 {
            for (column, width) in widths.iter().enumerate() {
                let dashes = "-".repeat(*width);
                text.push_str(&if column < left { format!("|-{dashes}-") } else { format!("|-{dashes}:") });
            }
            text.push_str("|\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let text = table(&[row(["test", "a"]), row(["SET", "12345"])], 1);
        assert_eq!(text, "| test |     a |\n|------|------:|\n| SET  | 12345 |\n");
    }
}
