import InletCore

/// What becomes of every delivery in every trouble: the rules of `Verdicts`, of each service's own table, and of the tries
/// within an attempt, as one page.
enum FaultMatrix {
    struct Case: Sendable, Hashable, CustomStringConvertible {
        var contender: Contender
        var trouble: Trouble

        var description: String { "\(contender) \(trouble)" }
    }

    static let cases = Contender.allCases.flatMap { contender in
        Trouble.allCases.map { Case(contender: contender, trouble: $0) }
    }

    /// Those that can happen.
    static let played = cases.filter { if case .never? = ends[$0] { false } else { true } }

    static let ends: [Case: MatrixEnd] = {
        var ends: [Case: MatrixEnd] = [:]
        for (trouble, row) in rows {
            for (contenders, end) in row {
                for contender in contenders { ends[Case(contender: contender, trouble: trouble)] = end }
            }
        }
        return ends
    }()

    private typealias Row = [([Contender], MatrixEnd)]

    private static let r2: [Contender] = [.r2Parts, .r2Other, .r2Single]
    private static let s3: [Contender] = [.s3Parts, .s3Single]
    private static let parts: [Contender] = [.r2Parts, .r2Other, .s3Parts]
    private static let singles: [Contender] = [.r2Single, .s3Single]
    private static let gigHive: [Contender] = [.form, .tus]
    private static let vopi: [Contender] = [.vopiKey, .vopiBearer]
    private static let roboscope: [Contender] = [.model, .markers]
    /// Those whose first request is one of control, which is not sent again within an attempt.
    private static let asking: [Contender] = r2 + [.s3Parts] + gigHive + vopi + roboscope

    private static let noNetwork: ([Contender], MatrixEnd) = (
        [.folder], .never(because: "a folder is no server; its disk has FolderPipelineTests")
    )
    private static let noBody = MatrixEnd.never(because: "the answer to a PUT of an object has no body")
    private static let noTag = MatrixEnd.never(because: "no ETag proves it: the checksum or the URL in the answer does")

    private static let rows: [Trouble: Row] = line.merging(answers) { $1 }.merging(words) { $1 }

    /// Below HTTP.
    private static let line: [Trouble: Row] = [
        .refused: [
            (asking + [.s3Single], .after(.outage, .connectFailed)),
            // Its disk is not mounted.
            ([.folder], .after(.outage, .destinationUnwritable)),
        ],
        .resetInHead: [(asking, .after(.outage, .connectionLost)), ([.s3Single], .absorbed), noNetwork],
        .resetInBody: [
            (r2 + s3 + [.tus] + vopi + [.markers], .absorbed), ([.form], .after(.outage, .connectionLost)),
            ([.model], .never(because: "its requests are shorter than that; .markers has the same client")), noNetwork,
        ],
        .resetInAnswer: [(asking, .after(.outage, .connectionLost)), ([.s3Single], .absorbed), noNetwork],
        .stalled: [(asking, .after(.outage, .stalled)), ([.s3Single], .absorbed), noNetwork],
        .stopped: [(asking + [.s3Single], .after(.cancelled, .cancelled)), noNetwork],
        .slow: [(asking + [.s3Single], .absorbed), noNetwork],
        .cutInHead: [
            (r2 + [.s3Parts] + gigHive + [.vopiKey] + roboscope, .after(.outage, .connectionLost)),
            // Its first request only asks for credits.
            ([.s3Single, .vopiBearer], .absorbed), noNetwork,
        ],
        .noTLS: [(asking + [.s3Single], .after(.outage, .tlsFailed)), noNetwork],
    ]

    /// Answers that are lost, cut or wrong.
    private static let answers: [Trouble: Row] = [
        .truncated: [
            (parts + vopi + [.markers], .absorbed), (gigHive + [.model], .after(.outage, .connectionLost)),
            (singles, noBody), noNetwork,
        ],
        .lostAnswer: [
            (parts + singles + vopi + [.markers], .absorbed), (gigHive + [.model], .after(.outage, .connectionLost)),
            noNetwork,
        ],
        .tooLong: [
            (parts + singles + vopi + [.markers], .absorbed), (gigHive + [.model], .after(.outage, .connectionLost)),
            noNetwork,
        ],
        .tooShort: [
            // Nobody reads what a PATCH of a space answers: it is read again.
            (parts + vopi + roboscope, .absorbed), (gigHive, .after(.outage, .badAnswer)), (singles, noBody), noNetwork,
        ],
        .wrongETag: [
            (r2 + s3, .after(.retry, .corrupted)), (vopi, .absorbed), (gigHive + roboscope, noTag), noNetwork,
        ],
        .expiredURL: [
            (r2, .after(.retry, .urlExpired)), (vopi, .absorbed),
            (s3 + gigHive + roboscope, .never(because: "it signs, or logs in, for each request")), noNetwork,
        ],
        .webPage: [
            (r2 + [.s3Parts] + gigHive + vopi + roboscope, .after(.outage, .badAnswer)), ([.s3Single], .absorbed),
            noNetwork,
        ],
    ]

    /// Statuses.
    private static let words: [Trouble: Row] = [
        .throttledUntil: [
            (r2 + gigHive + roboscope, .after(.retry, .throttled)), (s3 + vopi, .after(.outage, .throttled)), noNetwork,
        ],
        .throttled: [
            (r2 + gigHive + vopi + roboscope, .after(.retry, .throttled)), ([.s3Parts], .after(.outage, .throttled)),
            ([.s3Single], .absorbed), noNetwork,
        ],
        .unavailableUntil: [(asking + [.s3Single], .after(.outage, .serverError)), noNetwork],
        .unavailable: [(asking, .after(.outage, .serverError)), ([.s3Single], .absorbed), noNetwork],
        .faultAfterBody: [
            (r2 + s3 + [.tus] + vopi + [.markers], .absorbed), ([.form, .model], .after(.retry, .serverError)),
            noNetwork,
        ],
        .redirected: [
            // A wrong address, or region, concerns every file alike.
            (r2 + gigHive + vopi + roboscope + s3, .after(.outage, .redirected)), noNetwork,
        ],
    ]
}
