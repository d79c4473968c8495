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
@Suite(.timeLimit(.minutes(8))) struct FaultMatrixTests {
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
