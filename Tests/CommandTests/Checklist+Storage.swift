extension Checklist {
    /// S0: multipart uploads to R2 through the Spiral Storage API.
    static let storage = multipart + behaviour + keys + kinds + surroundings

    private static let multipart = [
        Row(
            "S0.01",
            .shown(by: ["bytes arrive whole, whatever their number", "what is not the JSON of the call is refused"])),
        Row(
            "S0.02",
            .shown(by: [
                "a file is cut into at most 1,000 parts of whole MiB",
                "parts cover the file once, all equal but the last", "what can be used is taken",
            ])),
        Row(
            "S0.03",
            .superseded(
                by: ["parts are equal, and really sent side by side", "every step is noted before it is relied upon"],
                why:
                    "Parts go to their URLs side by side instead of one after the other; parallel_parts: 1 gives the order back."
            )),
        Row(
            "S0.04",
            .shown(by: [
                "the judge wants the same foreign tag twice before it speaks of the store",
                "a part without a tag is never taken", "a store that refuses bare tags gets them as it sent them",
            ])),
        Row(
            "S0.05",
            .shown(by: [
                "bytes arrive whole, whatever their number", "an upload arrives byte for byte",
                "a list of parts must be the one that was stored",
            ])),
        Row(
            "S0.06",
            .shown(by: [
                "a source that changes after its first part is dropped with its upload",
                "cancelling a running upload takes effect at once and aborts it",
                "an upload that cannot be dropped now stays noted, and does not go on",
            ])),
    ]

    private static let behaviour = [
        Row(
            "S0.07",
            .superseded(
                by: [
                    "bytes are counted while they are under way, and in the end all of them",
                    "status shows how far each transfer is, in bytes and percent",
                ], why: "Progress is the bytes that the sockets have taken, not a step for each finished part.")),
        Row(
            "S0.08",
            .shown(by: [
                "a body counts as sent by any status from 200 to 299, and by no other",
                "an answer of any 2xx is judged by what it says, any other by its number",
            ])),
        Row(
            "S0.09",
            .shown(by: [
                "every status has its verdict, with credentials and for a presigned URL",
                "errors on the way and on the disk have theirs", "configured URLs are held to scheme, host and shape",
                "a missing file is missing, with path and cause in the text",
            ])),
        Row(
            "S0.10",
            .superseded(
                by: [
                    "a part has five tries, then the destination's own verdict counts",
                    "the next attempt sends only what is not proved", "waits stay within their bounds",
                    "a file fails when its attempts are used up", "what cannot help is not tried again",
                ],
                why:
                    "A part is sent again before the file is, a new attempt goes on with the parts that are proved, and what cannot help is not tried again."
            )),
        Row(
            "S0.11",
            .shown(by: [
                "queue list and show tell each file's story, as text and as JSON",
                "status shows how far each transfer is, in bytes and percent",
                "the public address of what was stored is printed, logged and kept in the receipt",
                "no two workers ever have one delivery, and no limit is exceeded",
                "a second agent on the same state_dir is 75 and leaves the first alone",
            ])),
    ]

    private static let keys = [
        Row(
            "S0.12",
            .shown(by: [
                "the default key is folder by kind, owner, time and clean name",
                "passing trouble is tried again, always under the same key",
            ])),
        Row(
            "S0.13",
            .shown(by: [
                "the default key is folder by kind, owner, time and clean name", "kinds are known by extension",
            ])),
        Row(
            "S0.14",
            .shown(by: [
                "the default key is folder by kind, owner, time and clean name", "an empty field drops its own folder",
            ])),
        Row(
            "S0.15",
            .shown(by: [
                "the default key is folder by kind, owner, time and clean name",
                "any name gives a key that every store can bear",
            ])),
        Row(
            "S0.16",
            .shown(by: [
                "a refusal says why to a person", "a rejected file is quarantined with a reason and never sent",
                "a missing file is missing, with path and cause in the text",
            ])),
        Row(
            "S0.17",
            .shown(by: [
                "a file that no route takes goes where a person sends it",
                "send delivers a file from anywhere and leaves it where it is",
            ])),
    ]

    private static let kinds = [
        Row(
            "S0.18",
            .superseded(
                by: [
                    "the default key is folder by kind, owner, time and clean name",
                    "a dropped file arrives byte for byte and the agent ends with 0",
                    "the demo ends well twice in a row in the same folder",
                ],
                why:
                    "Originals are never encoded anew: an image arrives byte for byte, and no temporary copy is made or deleted."
            )),
        Row(
            "S0.19",
            .shown(by: [
                "the default key is folder by kind, owner, time and clean name",
                "the demo ends well twice in a row in the same folder",
            ])),
        Row(
            "S0.20",
            .shown(by: [
                "the default key is folder by kind, owner, time and clean name",
                "the demo ends well twice in a row in the same folder",
            ])),
        Row(
            "S0.21",
            .shown(by: [
                "the default key is folder by kind, owner, time and clean name",
                "a plan holds all that admission needs",
            ])),
    ]

    private static let surroundings = [
        Row(
            "S0.22",
            .shown(by: [
                "a file that its user may not read yet waits and is said while others go on, and is sent once he may",
                "streams give their descriptors back",
            ])),
        Row(
            "S0.23",
            .shown(by: [
                "a dropped file arrives byte for byte and the agent ends with 0",
                "a crash at any point leaves one object, one receipt, and the source as its route asks",
                "a send that was killed goes on where it stopped",
            ])),
        Row(
            "S0.24",
            .shown(by: [
                "the delivery that waited longest comes first", "a destination's own limit holds",
                "status shows how far each transfer is, in bytes and percent",
            ])),
        Row(
            "S0.25",
            .shown(by: [
                "queue list and show tell each file's story, as text and as JSON",
                "a file has the worst state of its deliveries, once all have ended",
                "a failure is on record with code and reason",
            ])),
        Row(
            "S0.26",
            .shown(by: [
                "a file that its user may not read yet waits and is said while others go on, and is sent once he may",
                "an archive that cannot be written puts one file off, says so, and others go on",
                "work that is announced is never slept through",
            ])),
        Row(
            "S0.27",
            .superseded(
                by: [
                    "a transfer that moves has no total limit", "a body that nobody reads is a stall",
                    "a dripping answer ends at its deadline",
                ], why: "A large file may take as long as it moves; only a transfer that stands still is ended.")),
        Row(
            "S0.28",
            .shown(by: [
                "an object comes back by its key, byte for byte", "an address needs no configuration",
                "a fetch that was killed is gone on with where it stopped",
                "an answer that is no file goes to the caller",
            ])),
        Row(
            "S0.29",
            .superseded(
                by: [
                    "vips makes small JPEGs of pictures, and makes none larger",
                    "what a program makes is delivered beside the original, and removed then",
                ],
                why:
                    "A thumbnail keeps the picture's aspect within 512 by 512 pixels, and the original stays untouched."
            )),
        Row(
            "S0.30",
            .shown(by: [
                "the public address of what was stored is printed, logged and kept in the receipt",
                "a receipt's address has no signature",
            ])),
        Row(
            "S0.31",
            .shown(by: [
                "configured URLs are held to scheme, host and shape",
                "a URL from a server on the internet leads to the internet, encrypted",
                "a server that speaks nothing newer than TLS 1.1 is not spoken to, whatever the machine allows",
            ])),
        Row(
            "S0.32",
            .shown(by: [
                "a receipt's address has no signature",
                "an answer that is lost is found out without sending a part again",
            ])),
        Row(
            "S0.33",
            .shown(by: [
                "a part without a tag is never taken", "no answer at all is a stall",
                "a check with an unreachable destination is 69, with a missing folder 1, and 0 when all is fine",
                "a check with a wrong key says so and is 69",
            ])),
        Row(
            "S0.34",
            .shown(by: [
                "check --upload stores a test object and says how it was verified",
                "the default key is folder by kind, owner, time and clean name",
            ])),
    ]
}
