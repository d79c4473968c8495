extension Checklist {
    /// S3: large uploads to GigHive, streamed, with progress and cancel.
    static let gigHive = limits + body + control + results

    private static let refused = "what cannot arrive is refused here, with nothing sent"
    private static let whole = "bytes arrive whole, and the proof is the server's SHA-256"
    private static let cancelled = "cancelling ends any step at once, and abandoning removes what is there"
    private static let fields = "fields, name and type arrive as they are"
    private static let streamed = "a form is header, bytes and footer, and only the file's count"
    private static let once = "requests cancelled at random moments each end exactly once"

    private static let limits = [
        Row(
            "S3.01",
            .shown(by: [refused, "the server's own limit, found out at the end, ends the file and not the queue"])),
        Row("S3.02", .shown(by: [refused])),
        Row(
            "S3.03",
            .shown(by: [
                "the server's own limit, found out at the end, ends the file and not the queue",
                "auto goes on by tus where a form is too large for something on the way",
            ])),
        Row(
            "S3.04",
            .shown(by: [
                "defaults are those of the key table",
                "the server's own limit, found out at the end, ends the file and not the queue",
            ])),
    ]

    private static let body = [
        Row("S3.05", .shown(by: [fields, "a form is what RFC 7578 says", "a name stays within its quotes"])),
        Row("S3.06", .shown(by: [streamed, "the end of a form is held back from a file that was written to"])),
        Row("S3.07", .shown(by: [streamed])),
        Row("S3.08", .shown(by: ["progress of a form is that of its file", whole])),
        Row(
            "S3.09",
            .superseded(
                by: ["status shows how far each transfer is, in bytes and percent"],
                why:
                    "A line comes every 5 % or 5 s, whichever is later, so that a fast upload does not fill the log; status shows each byte."
            )),
    ]

    private static let control = [
        Row(
            "S3.10",
            .shown(by: [cancelled, "a person's cancel ends a stalled transfer at once, and what it left is removed"])),
        Row("S3.11", .shown(by: [cancelled, "cancelling a stalled upload takes effect within 200 ms"])),
        Row("S3.12", .shown(by: [once])),
        Row("S3.13", .shown(by: [cancelled, "cancelling a running upload takes effect at once and aborts it"])),
    ]

    private static let results = [
        Row(
            "S3.14",
            .shown(by: [whole, "a dropped clip arrives with its fields, and can be taken back by its job's number"])),
        Row(
            "S3.15",
            .shown(by: [
                "pages in the place of answers never break anything",
                "an error says what was answered, in words and without secrets",
            ])),
        Row(
            "S3.16",
            .shown(by: [
                "after any break the server is asked where it stands",
                "an answer to finalize that is lost costs no second upload",
            ])),
        Row(
            "S3.17",
            .shown(by: [
                "auto sends what is over its limit by tus",
                "auto goes on by tus where a form is too large for something on the way",
            ])),
        Row("S3.18", .shown(by: [once, cancelled])),
        Row("S3.19", .shown(by: [fields, "without fields the file's own name and day stand"])),
        Row(
            "S3.20",
            .shown(by: [
                whole, cancelled, "progress of a form is that of its file",
                "an upload that was killed sends at most one chunk again",
                "a killed moment before filing loses nothing and files once",
                "a form that is killed at any moment is filed once, and can be taken back where its answer came",
            ])),
    ]
}
