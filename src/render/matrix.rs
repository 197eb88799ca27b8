//! Where requests go, as a table for each host.

use zone_rollout_core::diagnose::{ClientRow, HostMatrix, Shares};

use super::io::Terminal;
use super::table::{Tone, table};

/// One table a host: a row for each kind of client, a column for now and for each loss.
pub fn text(matrices: &[HostMatrix], terminal: Terminal) -> String {
    let tables: Vec<String> = matrices.iter().map(|matrix| of_host(matrix, terminal)).collect();
    tables.join("\n\n")
}

fn of_host(matrix: &HostMatrix, terminal: Terminal) -> String {
    let mut header = vec!["CLIENTS".to_owned(), "NOW".to_owned()];
    header.extend(matrix.zones.iter().map(|zone| format!("{zone} GONE")));
    header.extend(matrix.zones.iter().map(|zone| format!("{zone} FAILING")));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let rows = matrix.rows.iter().map(row).collect();
    format!("{}\n{}", matrix.host, table(&header, rows, terminal))
}

fn row(row: &ClientRow) -> Vec<(String, Tone)> {
    let losses = row.gone.iter().chain(&row.failing).map(|(_, shares)| cell(shares));
    [(row.client.clone(), Tone::Plain), cell(&row.now)].into_iter().chain(losses).collect()
}

fn cell(shares: &Shares) -> (String, Tone) {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mut parts: Vec<String> = shares
        .zones
        .iter()
        .map(|(zone, share)| {
            format!("{} {}", if zone.is_empty() { "?" } else { zone }, percent(*share))
        })
        .collect();
    let fails = shares.errors >= 0.005;
    if fails {
        parts.push(format!("503 {}", percent(shares.errors)));
    }
    (parts.join(", "), if fails { Tone::Bad } else { Tone::Plain })
}
