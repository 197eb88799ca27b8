//! Where requests go, as a table for each host.

use zone_rollout_core::diagnose::{ClientRow, HostMatrix, Shares};

use super::io::Terminal;
use super::table::{Tone, table};

/// One table a host: a row for each kind of client and each zone that may be lost.
pub fn text(matrices: &[HostMatrix], terminal: Terminal) -> String {
    if matrices.is_empty() {
        return "no host with a rule, a route or a Rollout\n".to_owned();
    }
    let tables: Vec<String> = matrices.iter().map(|matrix| of_host(matrix, terminal)).collect();
    format!("{}\n", tables.join("\n\n"))
}

fn of_host(matrix: &HostMatrix, terminal: Terminal) -> String {
    let header = ["CLIENTS", "NOW", "ZONE", "IF ITS PODS ARE GONE", "IF ITS PODS FAIL"];
    let rows = matrix.rows.iter().flat_map(rows).collect();
    format!("{}\n{}", matrix.host, table(&header, rows, terminal))
}

/// The client and what it gets now stand in its first row only.
fn rows(row: &ClientRow) -> Vec<Vec<(String, Tone)>> {
    let plain = |text: &str| (text.to_owned(), Tone::Plain);
    if row.gone.is_empty() {
        return vec![vec![plain(&row.client), cell(&row.now), plain("-"), plain("-"), plain("-")]];
    }
    let losses = row.gone.iter().zip(&row.failing).enumerate();
    losses
        .map(|(index, ((zone, gone), (_, failing)))| {
            let (client, now) = match index {
                0 => (plain(&row.client), cell(&row.now)),
                _ => (plain(""), plain("")),
            };
            vec![client, now, plain(zone), cell(gone), cell(failing)]
        })
        .collect()
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
