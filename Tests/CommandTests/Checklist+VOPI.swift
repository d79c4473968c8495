extension Checklist {
    /// S4: product videos that become pictures at VOPI.
    static let vopi = access + upload + jobs + results + conduct

    private static let chain = "a product's video becomes pictures in a folder of its job"
    private static let generations = "a video becomes pictures, on servers of both generations"
    private static let commands = "people see jobs, pictures and frames, and fetch them again"
    private static let cancelled = "cancelling and deleting are said at the server"
    private static let ordered = "fields of the route reach the job, wrong ones are refused before a byte leaves"
    private static let told = "a job that runs gives its worker back, and says what it does"
    private static let product = "product.json tells of the product, the shops and every file"
    private static let older = "an older server is asked with its key, and never sent what would delete"
    private static let renewed = "links that have expired are asked for anew"

    private static let access = [
        Row("S4.01", .shown(by: [older, "a request without a body has no content type, and one login header"])),
        Row(
            "S4.02",
            .shown(by: [
                "one way of logging in is needed, and one only",
                "a running agent gives its token, and alone the stored login is used",
            ])),
        Row(
            "S4.03",
            .superseded(
                by: [
                    "a transfer that moves has no total limit", "a body that nobody reads is a stall",
                    "a dripping answer ends at its deadline",
                ], why: "A long video may take as long as it moves; only an upload that stands still is ended.")),
    ]

    private static let upload = [
        Row("S4.04", .shown(by: [generations, "an upload place needs its two addresses, and may be nowhere near us"])),
        Row("S4.05", .shown(by: [chain, "each kind of video goes under its own type"])),
        Row(
            "S4.06",
            .shown(by: [
                "bytes are counted while they are under way, and in the end all of them",
                "status shows how far each transfer is, in bytes and percent",
            ])),
    ]

    private static let jobs = [
        Row("S4.07", .shown(by: [chain, ordered])),
        Row("S4.08", .shown(by: [ordered])),
        Row("S4.09", .shown(by: [ordered, chain])),
        Row("S4.10", .shown(by: [ordered])),
        Row("S4.11", .shown(by: [commands])),
        Row("S4.12", .shown(by: [told])),
        Row("S4.13", .shown(by: [told, chain])),
        Row(
            "S4.14",
            .shown(by: [
                "every status has one reading", "a job that failed twice and then completes is delivered",
                "a job that ran while it was cancelled is delivered all the same",
            ])),
        Row("S4.15", .shown(by: [told, "progress is within its bounds or absent"])),
        Row("S4.16", .shown(by: [cancelled, "giving up a delivery cancels its job, twice without harm"])),
        Row(
            "S4.17", .shown(by: [cancelled, "a newer server cancels by POST and deletes by DELETE, and is asked once"])),
        Row("S4.18", .shown(by: ["one picture can be deleted, and the others stay"])),
    ]

    private static let results = [
        Row("S4.19", .shown(by: [commands])),
        Row("S4.20", .shown(by: [commands])),
        Row("S4.21", .shown(by: [commands])),
        Row("S4.22", .shown(by: [renewed, commands])),
        Row(
            "S4.23",
            .shown(by: [
                renewed,
                "links to other places than the rules allow end it, and a retry fetches without another job",
            ])),
        Row("S4.24", .shown(by: [product, commands])),
        Row("S4.25", .shown(by: [product, chain])),
        Row("S4.26", .shown(by: [commands, "a list must be one, and its odd entries are left out"])),
    ]

    private static let conduct = [
        Row(
            "S4.27",
            .shown(by: [
                chain, "killed at a step, the next start goes on there: one upload, one job, all pictures",
                "killed once at each note",
            ])),
        Row("S4.28", .shown(by: [told, "a percentage stays one"])),
        Row(
            "S4.29",
            .shown(by: [
                "a job that failed for good is reported, and a retry makes another of the same upload",
                "a job that somebody cancelled is watched, then reported",
            ])),
        Row(
            "S4.30",
            .shown(by: ["each status and code has one meaning", "a code and a message are told apart from prose"])),
        Row("S4.31", .shown(by: ["a job that says everything is read whole"])),
        Row(
            "S4.32",
            .shown(by: [
                "killed while it sends, it sends to the same place", "killed while it fetches, it fetches the rest",
            ])
        ),
        Row(
            "S4.33",
            .superseded(
                by: ["a source that changed or went before it was sent stays out"],
                why:
                    "No copy is made: the file is sent from where it is, and one that changes meanwhile is not delivered."
            )),
        Row(
            "S4.34",
            .superseded(
                by: ["a destination's own limit holds", "the delivery that waited longest comes first"],
                why: "Videos wait in the queue and go one after the other, as many at once as max_in_flight says.")),
        Row("S4.35", .shown(by: [product, commands])),
    ]
}
