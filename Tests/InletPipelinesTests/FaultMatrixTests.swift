import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Every way of delivering in every trouble of the table: how the attempt ends, and that the file is there once and whole
/// in the end. `INLET_CHAOS_SEED` chooses the bytes at which things break.
@Suite(.timeLimit(.minutes(15))) struct FaultMatrixTests {
    static let seed = ProcessInfo.processInfo.environment["INLET_CHAOS_SEED"].flatMap { UInt64($0) } ?? 20_261_122

    @Test func `the table has every trouble of every pipeline, and a reason where there is none`() {
        print("fault matrix: INLET_CHAOS_SEED=\(Self.seed), \(FaultMatrix.played.count) cases")
        #expect(FaultMatrix.cases.filter { FaultMatrix.ends[$0] == nil } == [])
        for (place, end) in FaultMatrix.ends {
            if case .never(let reason) = end { #expect(!reason.isEmpty, "\(place)") }
        }
        #expect(Set(FaultMatrix.played.map(\.contender)).count == Contender.allCases.count)
        #expect(Set(FaultMatrix.played.map(\.trouble)).count == Trouble.allCases.count)
        #expect(FaultMatrix.played.count > 190)
    }

    @Test(arguments: FaultMatrix.played)
    func `a delivery gets over it, once and whole`(_ given: FaultMatrix.Case) async throws {
        let index = FaultMatrix.cases.firstIndex(of: given) ?? 0
        let end = try #require(FaultMatrix.ends[given])
        try await withMatrix(given.contender, longestStall: given.trouble.longestStall) { place in
            var random = SeededGenerator(seed: Self.seed &+ UInt64(index))
            let means = given.trouble.means(using: &random)
            let said: Comment = "\(given), \(means), INLET_CHAOS_SEED=\(Self.seed)"
            var drive = MatrixDrive(place: place, means: means, contender: given.contender)
            let last = try await drive.deliver()
            #expect(drive.injected > 0, said)
            // Bytes beyond the announced end may come when the connection is used again: one more answer that is none.
            let surplus = given.trouble == .tooShort
            // On a machine that stands still for a second more may stall.
            let again = given.trouble == .stalled
            switch end {
            case .absorbed:
                #expect(drive.failures.filter { !surplus || $0.code != .badAnswer } == [], said)
                #expect(last == nil, said)
            case .after(let kind, let code):
                let failures = surplus && drive.failures.count == 2 ? drive.failures.dropLast() : drive.failures[...]
                #expect(again ? Set(failures.map(\.code)) == [code] : failures.map(\.code) == [code], said)
                let kinds = failures.map { VerdictKind($0) }
                #expect(again ? Set(kinds) == [kind] : kinds == [kind], said)
                #expect(last == nil, said)
                if let wait = given.trouble.wait { #expect(drive.failures.first?.asked == wait, said) }
            case .givenUp(let code):
                #expect(last?.verdict == .giveUp && last?.code == code, said)
            case .never: Issue.record("not to be played")
            }
            try place.check(last == nil)
        }
    }
}

/// Attempts at one delivery as the agent makes them, without the waits between them.
struct MatrixDrive {
    let place: MatrixPlace
    let means: MatrixMeans
    let contender: Contender
    /// What failed attempts ended with, the last one of a delivery that was given up too.
    private(set) var failures: [DeliveryError] = []

    init(place: MatrixPlace, means: MatrixMeans, contender: Contender) {
        self.place = place
        self.means = means
        self.contender = contender
    }

    /// How often something went wrong.
    var injected: Int {
        switch means {
        case .closed: failures.count { [.connectFailed, .destinationUnwritable].contains($0.code) }
        case .line, .cancelled, .plainPort: place.proxy?.injected ?? 0
        case .server: place.faults()
        }
    }

    private var isCancelled: Bool { if case .cancelled = means { true } else { false } }

    /// - Returns: why it was given up; nil when it is delivered.
    mutating func deliver() async throws -> DeliveryError? {
        try begin()
        let notes = Notes()
        for _ in 1...100 {
            switch try await attempt(notes.attempt()) {
            case .success(.delivered(let proof)):
                #expect(proof.key == place.order.key)
                return nil
            case .success(.waiting(let until, _)): place.clock.advance(to: until)
            case .failure(let error):
                failures.append(error)
                switch VerdictKind(error) {
                case .retry, .outage: break
                case .cancelled where isCancelled: break
                default: return error
                }
                if failures.count == 1 { try repair() }
            }
        }
        throw DeliveryError(.giveUp, .internalFault, "not delivered in 100 attempts: \(failures)")
    }

    private func begin() throws {
        switch means {
        case .closed: try place.leave()
        case .line(let fault), .cancelled(let fault):
            place.proxy?.add(fault)
            // Parts go side by side, and only one of them has the bytes.
            if [.r2Parts, .s3Parts, .markers].contains(contender), fault.isForBodies { place.proxy?.add(fault) }
        case .server(let action, let step, let times): place.misbehave(action, step, times)
        case .plainPort: for _ in 1...6 { place.proxy?.add(.noise) }
        }
    }

    private func repair() throws {
        if case .closed = means { try place.comeBack() }
        place.proxy?.calm()
    }

    private func attempt(_ attempt: Attempt) async throws -> Result<DeliveryOutcome, DeliveryError> {
        let isTLS = if case .plainPort = means { failures.isEmpty } else { false }
        let pipeline = isTLS ? place.overTLS : place.pipeline
        let (source, order) = (try SourceFile(opening: place.source), place.order)
        let running = Task { () async -> Result<DeliveryOutcome, DeliveryError> in
            do throws(DeliveryError) {
                return .success(try await pipeline.deliver(source, order, attempt))
            } catch {
                return .failure(error)
            }
        }
        if isCancelled, failures.isEmpty {
            try await eventually("the line stalls") { injected > 0 }
            running.cancel()
        }
        return await running.value
    }
}

extension LineFault {
    /// Whether it waits for more bytes than a request of control has.
    fileprivate var isForBodies: Bool {
        switch self {
        case .reset(.request, let after): after > 1000
        case .slow: true
        default: false
        }
    }
}

/// A way of delivering that meets every trouble of `FaultMatrix`.
enum Contender: String, CaseIterable, Sendable {
    /// Dialect v1, two parts.
    case r2Parts
    /// Dialect r2, one part.
    case r2Other
    /// Dialect v1, one presigned PUT.
    case r2Single
    case s3Parts
    case s3Single
    /// GigHive's one form.
    case form
    case tus
    /// VOPI's older servers.
    case vopiKey
    case vopiBearer
    /// Roboscope: a stored model is registered.
    case model
    /// Roboscope: a file of markers is imported.
    case markers
    case folder
}

/// What happens to a delivery once; the issue's list.
enum Trouble: String, CaseIterable, Sendable {
    case refused
    /// RST within the first bytes of the first request.
    case resetInHead
    /// RST in the middle of the bytes.
    case resetInBody
    /// RST before the first answer has told its status.
    case resetInAnswer
    /// No byte moves any more; the sender must notice by itself.
    case stalled
    /// The same, and the agent stops in the middle of it.
    case stopped
    case slow
    /// The connection ends in the first answer's head.
    case cutInHead
    /// The connection ends in the body of the answer that matters.
    case truncated
    case throttledUntil
    case throttled
    case unavailableUntil
    case unavailable
    case faultAfterBody
    /// Complete, finalize, create job: done, and not answered.
    case lostAnswer
    case wrongETag
    case expiredURL
    case noTLS
    case redirected
    case tooLong
    case tooShort
    case webPage
}

/// The steps of a delivery, whatever each service calls them.
enum MatrixStep: Sendable {
    /// The first request of the delivery proper.
    case open
    /// The bytes.
    case send
    /// What makes them count.
    case commit
}

/// What the end of an attempt is to the agent.
enum VerdictKind: Sendable, Hashable {
    case retry
    case outage
    case giveUp
    case credentials
    case cancelled
    case source

    init(_ error: DeliveryError) {
        self =
            switch FailureClassifier.ruling(error) {
            case .retry: .retry
            case .outage, .stranger: .outage
            case .file, .refusal, .unknownDelivered: .giveUp
            case .credentials: .credentials
            case .own: error.verdict == .cancelled ? .cancelled : .source
            }
    }
}

/// How a delivery that met a trouble goes on; where it is delivered, it is so once and whole.
enum MatrixEnd: Sendable, Equatable {
    /// Delivered, and no attempt failed.
    case absorbed
    /// Delivered after one attempt that failed so.
    case after(VerdictKind, ErrorCode)
    /// Given up, and nothing arrived.
    case givenUp(ErrorCode)
    /// Cannot happen to this one.
    case never(because: String)
}

/// How a trouble is made.
enum MatrixMeans: Sendable {
    /// Nothing listens, until the first attempt has failed.
    case closed
    /// The first two connections meet this: parts go side by side.
    case line(LineFault)
    /// As `line`; the first attempt is cancelled when it has happened.
    case cancelled(LineFault)
    /// The server does this, so many times.
    case server(FaultAction, at: MatrixStep, times: Int)
    /// The configuration wants TLS where the port has none, until the first attempt has failed.
    case plainPort
}

extension Trouble {
    /// Beyond what any sender waits within an attempt.
    static let asked = 30

    /// What is asked for with `Retry-After`.
    var wait: Duration? { [.throttledUntil, .unavailableUntil].contains(self) ? .seconds(Self.asked) : nil }

    /// How long a connection may stand still; nil = as long as each request allows. Elsewhere a busy machine would stall.
    var longestStall: Duration? { self == .stalled ? .seconds(1) : nil }

    /// - Parameter random: Chooses the byte where it is one of many.
    func means(using random: inout SeededGenerator) -> MatrixMeans {
        switch self {
        case .refused: .closed
        case .resetInHead: .line(.reset(.request, after: Int.random(in: 1..<60, using: &random)))
        case .resetInBody: .line(.reset(.request, after: Int.random(in: 8000..<20_000, using: &random)))
        case .resetInAnswer: .line(.reset(.answer, after: Int.random(in: 0..<15, using: &random)))
        case .stalled: .line(.stall(.request, after: Int.random(in: 1..<60, using: &random)))
        case .stopped: .cancelled(.stall(.request, after: Int.random(in: 1..<60, using: &random)))
        case .slow: .line(.slow(piece: Int.random(in: 16_000..<32_000, using: &random)))
        case .cutInHead: .line(.cut(.answer, after: Int.random(in: 30..<40, using: &random)))
        case .truncated: .server(.truncateAnswer(afterBytes: 3), at: .commit, times: 1)
        case .throttledUntil: .server(.status(429, retryAfter: Self.asked), at: .open, times: 1)
        case .throttled: .server(.status(429), at: .open, times: 1)
        case .unavailableUntil: .server(.status(503, retryAfter: Self.asked), at: .open, times: 1)
        case .unavailable: .server(.status(503), at: .open, times: 1)
        case .faultAfterBody: .server(.status(500), at: .send, times: 1)
        case .lostAnswer: .server(.loseAnswer, at: .commit, times: 1)
        case .wrongETag: .server(.wrongETag(.random), at: .send, times: 2)
        case .expiredURL: .server(.expiredURLs, at: .open, times: 1)
        case .noTLS: .plainPort
        case .redirected: .server(.redirect(to: "http://127.0.0.1:1/elsewhere"), at: .open, times: 1)
        case .tooLong: .server(.wrongLength(by: 10), at: .commit, times: 1)
        case .tooShort: .server(.wrongLength(by: -3), at: .commit, times: 1)
        case .webPage: .server(.html, at: .open, times: 1)
        }
    }
}

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
