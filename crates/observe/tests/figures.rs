//! `docs/trace-figures.md` is generated from the code, and every column of tcptrace has a figure.

use std::fmt::Write;
use std::path::Path;

use airpath_observe::Events;
use airpath_observe::columns::{COLUMNS, CONNECTION_COLUMNS, SEGMENT_COLUMNS};

/// tcptrace's columns for each direction, with `--csv -l -r -W`.
const TCPTRACE: &str = "total_packets resets_sent ack_pkts_sent pure_acks_sent sack_pkts_sent dsack_pkts_sent max_sack_blks/ack
    unique_bytes_sent actual_data_pkts actual_data_bytes rexmt_data_pkts rexmt_data_bytes zwnd_probe_pkts zwnd_probe_bytes
    outoforder_pkts pushed_data_pkts SYN/FIN_pkts_sent req_1323_ws/ts adv_wind_scale req_sack sacks_sent urgent_data_pkts
    urgent_data_bytes mss_requested max_segm_size min_segm_size avg_segm_size max_win_adv min_win_adv zero_win_adv avg_win_adv
    max_owin min_non-zero_owin avg_owin wavg_owin initial_window_bytes initial_window_pkts ttl_stream_length missed_data
    truncated_data truncated_packets data_xmit_time idletime_max hardware_dups throughput RTT_samples RTT_min RTT_max RTT_avg
    RTT_stdev RTT_from_3WHS RTT_full_sz_smpls RTT_full_sz_min RTT_full_sz_max RTT_full_sz_avg RTT_full_sz_stdev post-loss_acks
    ambiguous_acks RTT_min_(last) RTT_max_(last) RTT_avg_(last) RTT_sdv_(last) segs_cum_acked duplicate_acks triple_dupacks
    max_#_retrans min_retr_time max_retr_time avg_retr_time sdv_retr_time";

#[test]
fn every_column_of_tcptrace_has_a_name() {
    let ours: Vec<&str> = COLUMNS
        .iter()
        .flat_map(|column| column.tcptrace.split_whitespace())
        .map(|name| name.split(':').next().unwrap_or(name))
        .collect();
    let missing: Vec<&str> = TCPTRACE.split_whitespace().filter(|name| !ours.contains(name)).collect();
    assert_eq!(missing, [""; 0]);
    assert_eq!(TCPTRACE.split_whitespace().count(), 66 + 4);
}

#[test]
fn names_are_unique() {
    let mut names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), COLUMNS.len());
}

#[test]
fn the_documented_table_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trace-figures.md");
    let wanted = document();
    if std::env::var_os("AIRPATH_BLESS").is_some() {
        std::fs::write(&path, wanted).expect("the document can be written");
        return;
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == wanted,
        "docs/trace-figures.md is not that of the code; AIRPATH_BLESS=1 cargo test -p airpath-observe --test figures"
    );
}

/// Longest line of a Markdown paragraph.
const MARKDOWN_COLUMNS: usize = 120;

fn document() -> String {
    let mut text = include_str!("figures/opening.md").to_owned();
    text.push_str("\n## Of a connection\n\n| name | unit | what it is | tcptrace |\n| --- | --- | --- | --- |\n");
    for column in CONNECTION_COLUMNS {
        row(&mut text, column.name, column.unit, column.meaning, column.tcptrace);
    }
    text.push_str("\n## Of each direction\n\n| name | unit | what it is | tcptrace |\n| --- | --- | --- | --- |\n");
    for column in COLUMNS {
        row(&mut text, column.name, column.unit, column.meaning, column.tcptrace);
    }
    text.push_str(include_str!("figures/segments.md"));
    text.push_str("\n| name | unit | what it is | tshark |\n| --- | --- | --- | --- |\n");
    for column in SEGMENT_COLUMNS {
        let tshark = if column.tshark.is_empty() { String::new() } else { format!("`{}`", column.tshark) };
        writeln!(text, "| `{}` | {} | {} | {tshark} |", column.name, column.unit, column.meaning)
            .expect("a string takes it");
    }
    text.push_str("\n### Events\n\n");
    let mut line = String::new();
    for (index, (_, name)) in Events::NAMES.iter().enumerate() {
        let separator = if index + 1 == Events::NAMES.len() { '.' } else { ',' };
        let item = format!("`{name}`{separator}");
        if !line.is_empty() && line.len() + 1 + item.len() > MARKDOWN_COLUMNS {
            writeln!(text, "{line}").expect("a string takes it");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&item);
    }
    writeln!(text, "{line}").expect("a string takes it");
    text.push_str(include_str!("figures/validation.md"));
    text
}

fn row(text: &mut String, name: &str, unit: &str, meaning: &str, tcptrace: &str) {
    let theirs: Vec<String> = tcptrace
        .split_whitespace()
        .map(|name| format!("`{}`", name.replace(":1", " (first)").replace(":2", " (second)")))
        .collect();
    writeln!(text, "| `{name}` | {unit} | {meaning} | {} |", theirs.join(", ")).expect("a string takes it");
}
