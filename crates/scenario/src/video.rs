//! Files of a video's frames, as `ffprobe` writes them, in JSON or CSV.

use airpath_app::streaming::{Frame, FrameKind, Video};
use airpath_core::Span;
use serde_json::{Deserializer, Map, Value};

use crate::error::{Origin, ScenarioError};

/// The command that writes such a file; part of error messages.
pub(crate) const COMMAND: &str =
    "make the file with `ffprobe -select_streams v:0 -show_frames -of json VIDEO > FILE.json`";

/// Names of the time of a frame, the best first. Versions of `ffprobe` differ.
const TIMES: [&str; 3] = ["best_effort_timestamp_time", "pts_time", "pkt_pts_time"];
/// The columns of `-show_entries frame=pts_time,pkt_size,pict_type -of csv`.
const COLUMNS: [&str; 3] = ["pts_time", "pkt_size", "pict_type"];

/// A field of a frame that is wrong, and what is wrong with it.
type Wrong = (&'static str, String);

/// A frame's entry and the line on which it begins.
struct Entry<'a> {
    line: usize,
    fields: Fields<'a>,
}

/// The fields of a frame.
enum Fields<'a> {
    Json(Map<String, Value>),
    /// `key=value`, separated by commas.
    Pairs(&'a str),
    /// The values of [`COLUMNS`].
    Columns(&'a str),
}

impl Fields<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        match self {
            Self::Json(fields) => fields.get(name)?.as_str(),
            Self::Pairs(text) => text
                .split(',')
                .filter_map(|pair| pair.split_once('='))
                .find_map(|(key, value)| (key == name).then_some(value)),
            Self::Columns(text) => text.split(',').nth(COLUMNS.iter().position(|column| *column == name)?),
        }
    }

    /// The frame; `None` for one of another medium.
    fn frame(&self) -> Result<Option<Frame>, Wrong> {
        if self.get("media_type").is_some_and(|medium| medium != "video") {
            return Ok(None);
        }
        let missing = |field| (field, "this field is missing".to_owned());
        let kind = match self.get("pict_type").map(str::trim) {
            Some("I") => FrameKind::I,
            Some("P") => FrameKind::P,
            Some("B") => FrameKind::B,
            Some(other) => return Err(("pict_type", format!("`{other}` is not I, P or B"))),
            None => return Err(missing("pict_type")),
        };
        let size = self.get("pkt_size").ok_or_else(|| missing("pkt_size"))?.trim();
        let size =
            size.parse().map_err(|_| ("pkt_size", format!("`{size}` is no number of bytes up to {}", u32::MAX)))?;
        let mut known = TIMES.iter().filter_map(|name| Some((*name, self.get(name)?.trim())));
        let (name, time) =
            known.find(|(_, time)| *time != "N/A").ok_or_else(|| (TIMES[1], "the frame has no time".to_owned()))?;
        let seconds = time.parse::<f64>().ok().filter(|seconds| (0.0..1e9).contains(seconds));
        let seconds = seconds.ok_or_else(|| (name, format!("`{time}` is no time in seconds, from zero on")))?;
        Ok(Some(Frame { kind, size, time: Span::from_secs_f64(seconds) }))
    }
}

/// Reads the frames of a video from the `text` of a file; `file` is what errors call it.
///
/// # Errors
/// If it is not such a file. The error has the line and the field.
pub(crate) fn parse(text: &str, file: &str) -> Result<Video, ScenarioError> {
    let json = text.trim_start().starts_with('{');
    let entries = if json { of_json(text, file)? } else { of_csv(text, file)? };
    let mut frames = Vec::with_capacity(entries.len());
    let mut lines = Vec::with_capacity(entries.len());
    for (number, Entry { line, fields }) in entries.iter().enumerate() {
        let frame = fields.frame().map_err(|(field, message)| {
            let field = if json { format!("frames.{number}.{field}") } else { field.to_owned() };
            wrong(file, *line, message, &field)
        })?;
        if let Some(frame) = frame {
            frames.push(frame);
            lines.push(*line);
        }
    }
    Video::new(frames).map_err(|error| {
        let line = error.frame.and_then(|frame| lines.get(frame)).copied();
        let field = match error.field {
            "size" => "pkt_size",
            "time" => TIMES[1],
            other => other,
        };
        wrong(file, line.unwrap_or(1), error.message.to_owned(), field)
    })
}

fn wrong(file: &str, line: usize, message: String, field: &str) -> ScenarioError {
    ScenarioError::new(message, Origin::Line { file: file.to_owned(), line }, field).help(COMMAND)
}

/// The entries of the array `frames`. They are read one by one, so that each has its line.
fn of_json<'a>(text: &'a str, file: &str) -> Result<Vec<Entry<'a>>, ScenarioError> {
    let array = text.find("\"frames\"").and_then(|key| Some(key + text[key..].find('[')? + 1));
    let mut at = array.ok_or_else(|| wrong(file, 1, "there is no array of frames".to_owned(), "frames"))?;
    let mut line = 1 + newlines(&text[..at]);
    let mut entries = Vec::new();
    loop {
        let rest = text[at..].trim_start_matches(|sign: char| sign.is_whitespace() || sign == ',');
        line += newlines(&text[at..text.len() - rest.len()]);
        at = text.len() - rest.len();
        if rest.starts_with(']') {
            return Ok(entries);
        }
        let mut stream = Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
        let field = format!("frames.{}", entries.len());
        let fields = match stream.next() {
            Some(Ok(fields)) => fields,
            Some(Err(error)) => {
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default().to_owned();
                return Err(wrong(file, line + error.line().saturating_sub(1), message, &field));
            }
            None => return Err(wrong(file, line, "the file ends within the frames".to_owned(), &field)),
        };
        entries.push(Entry { line, fields: Fields::Json(fields) });
        let length = stream.byte_offset();
        line += newlines(&rest[..length]);
        at += length;
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// The lines of a CSV file: with the names of fields (`-of csv=nokey=0`), or with three columns.
fn of_csv<'a>(text: &'a str, file: &str) -> Result<Vec<Entry<'a>>, ScenarioError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let entry = |(number, line): (usize, &'a str)| {
        let wrong = |message: &str| {
            wrong(file, number + 1, message.to_owned(), "").help(format!(
                "write it with `ffprobe -select_streams v:0 -show_frames -of csv=nokey=0`, \
                 or with `-show_entries frame={} -of csv`",
                COLUMNS.join(",")
            ))
        };
        let fields = line.strip_prefix("frame,").ok_or_else(|| wrong("the line is no frame of ffprobe"))?;
        let fields = if fields.contains('=') {
            Fields::Pairs(fields)
        } else if fields.trim_end_matches(',').split(',').count() == COLUMNS.len() {
            Fields::Columns(fields)
        } else {
            return Err(wrong("the names of the fields are missing"));
        };
        Ok(Entry { line: number + 1, fields })
    };
    lines.map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::Bytes;

    const JSON: &str = r#"{
    "frames": [
        {
            "media_type": "video",
            "pict_type": "I",
            "pkt_size": "3000",
            "pts_time": "0.080000"
        },
        {
            "media_type": "audio",
            "pts_time": "0.081000"
        },
        {
            "media_type": "video",
            "pict_type": "B",
            "pkt_size": "200",
            "pts_time": "0.120000",
            "side_data_list": [{ "side_data_type": "x" }]
        },
        {
            "media_type": "video",
            "pict_type": "P",
            "pkt_size": "800",
            "best_effort_timestamp_time": "0.160000",
            "pts_time": "N/A"
        }
    ]
}"#;

    fn error(text: &str) -> String {
        parse(text, "clip").expect_err("wrong").to_string()
    }

    #[test]
    fn json_and_csv_give_the_same_video() {
        let json = parse(JSON, "clip.json").expect("a video");
        assert_eq!((json.frames().len(), json.bytes(), json.sending_order()), (3, Bytes::new(4000), &[0, 2, 1][..]));
        assert_eq!(json.duration(), Span::from_millis(120));
        let columns = "frame,0.080000,3000,I\nframe,0.120000,200,B\n\nframe,0.160000,800,P\n";
        let pairs = "frame,media_type=video,pkt_pts_time=0.08,pkt_size=3000,pict_type=I\n\
                     frame,media_type=audio,pkt_pts_time=0.08\n\
                     frame,media_type=video,pkt_pts_time=0.12,pkt_size=200,pict_type=B\n\
                     frame,media_type=video,pkt_pts_time=0.16,pkt_size=800,pict_type=P\n";
        for csv in [columns, pairs] {
            assert_eq!(parse(csv, "clip.csv").expect("a video").frames(), json.frames());
        }
    }

    #[test]
    fn errors_have_the_line_and_the_field() {
        let wrong = error(&JSON.replace("\"200\"", "\"2k\""));
        assert!(wrong.contains("clip:13") && wrong.contains("frames.2.pkt_size") && wrong.contains("`2k`"), "{wrong}");
        let wrong = error(&JSON.replace("\"P\"", "\"?\""));
        assert!(wrong.contains("clip:20") && wrong.contains("frames.3.pict_type"), "{wrong}");
        let wrong = error(&JSON.replace("\"800\",", "\"800\""));
        assert!(wrong.contains("clip:24") && wrong.contains("frames.3"), "{wrong}");
        let wrong = error(&JSON.replace("0.120000", "0.010000"));
        assert!(wrong.contains("clip:13") && wrong.contains("pts_time"), "{wrong}");
        let wrong = error(&JSON[..JSON.len() - 10]);
        assert!(wrong.contains("ends within") || wrong.contains("EOF"), "{wrong}");
        let wrong = error("frame,0.0,3000,I\nframe,x,10,P\n");
        assert!(wrong.contains("clip:2") && wrong.contains("pts_time"), "{wrong}");
        let wrong = error("frame,video,0,1,0,0.0,3000,I\n");
        assert!(wrong.contains("nokey=0"), "{wrong}");
        for nothing in ["", "{}", "{\"frames\": []}", "frame,0.0,3000,I"] {
            assert!(error(nothing).contains("clip"), "{nothing}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,80}", at in 0..900_usize, cut in 0..60_usize) {
            let _ = parse(&text, "x");
            let _ = parse(&format!("frame,{text}"), "x");
            let mut damaged: String = JSON.chars().take(at).collect();
            damaged.push_str(&text);
            damaged.extend(JSON.chars().skip(at + cut));
            let _ = parse(&damaged, "x");
        }
    }
}
