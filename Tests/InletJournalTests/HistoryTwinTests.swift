import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// Two journals to which the same is done, one of which moves what has ended to its history again and again: whatever is
/// asked, they say the same.
@Suite(.seated) struct HistoryTwinTests {
    @Test(arguments: Seeds.all)
    func `a journal with a history answers as one without`(seed: UInt64) async throws {
        await Seeds.play(seed, of: "history") { commands in
            var random = SeededGenerator(seed: seed)
            let (plain, pruned) = (try Bench(), try Bench())
            var moved = 0
            for _ in 0..<80 {
                let act = TwinAct.random(&random)
                commands.append("\(act)")
                let answers = (try await act.play(plain), try await act.play(pruned))
                if Bool.random(using: &random) { moved += try await pruned.prune() }
                guard answers.0 == answers.1 else { throw Unexpected(what: "\(answers)") }
                let views = (try await TwinAct.view(plain), try await TwinAct.view(pruned))
                guard views.0 == views.1 else { throw Unexpected(what: "\(views.0)\n\(views.1)") }
            }
            if moved == 0 { throw Unexpected(what: "nothing ever went to the history") }
        }
    }
}

/// Something that is done to a journal, with small numbers for names, contents and files, so that they meet.
private enum TwinAct {
    case admit(name: Int, size: Int64, content: UInt8)
    case end(DeliveryState)
    case finish(keeps: Bool)
    case retry(Int64)
    case cancel(Int64)
    case forget(Int64)
    case rename(Int, to: Int)
    case touch(Int64, inode: UInt64)

    static func random(_ random: inout SeededGenerator) -> TwinAct {
        func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
        let file = Int64(number(1...15))
        switch number(0...19) {
        case 0...5: return .admit(name: number(0...4), size: Int64(number(1...2)), content: UInt8(number(1...4)))
        case 6...10:
            let ends: [DeliveryState] = [.delivered, .delivered, .delivered, .gone, .superseded, .failed]
            return .end(ends[number(0...5)])
        case 11...14: return .finish(keeps: number(0...2) > 0)
        case 15: return .retry(file)
        case 16: return .cancel(file)
        case 17: return .forget(file)
        case 18: return .rename(number(0...4), to: number(0...4))
        default: return .touch(file, inode: UInt64(number(1...2)))
        }
    }

    /// Equal contents have equal sizes.
    private static func digest(_ content: UInt8, _ size: Int64) -> Digest { .content(content * 2 + UInt8(size)) }

    /// - Returns: what the journal answered.
    func play(_ bench: Bench) async throws -> String {
        let (journal, now) = (bench.journal, Bench.start)
        switch self {
        case .admit(let name, let size, let content):
            var admission = FileAdmission.test("file-\(name)", .test(size: size), key: "key-\(size)")
            admission.plan?.dedupe = .skip
            admission.plan?.priority = size == 1 ? .high : .low
            admission.plan?.digests = [Self.digest(content, size)]
            return "\(try await journal.admit(admission, at: now))"
        case .end(let state):
            guard let claim = try await bench.claimAll(most: 1).first else { return "nothing is due" }
            try await bench.end(
                claim, state == .delivered ? .delivered(.test(claim.delivery.key ?? "?")) : .test(state))
            return "\(claim.delivery.key ?? "?") \(claim.original?.job ?? 0)"
        case .finish(let keeps):
            try await bench.finishAll(keeps ? Disposition.kept : Disposition.deleted)
            return "finished"
        case .retry(let file): return "\(try await journal.retry(file, uptimes: [:], at: now))"
        case .cancel(let file): return "\(try await journal.cancel(file, at: now) ?? [])"
        case .forget(let file): return "\(try await journal.forget(file))"
        case .rename(let old, let new):
            let arrival = Arrival.test("file-\(new)", .test(size: 1, changed: 2))
            guard let found = try await journal.renamed(from: FilePath("file-\(old)"), to: arrival) else { return "no" }
            return "\(found.file.id) \(try await journal.rename(found, to: arrival, plan: nil))"
        case .touch(let file, let inode):
            guard let known = try await journal.job(file)?.file else { return "no" }
            let identity = FileIdentity.test(size: known.identity.size, inode: inode)
            try await journal.refresh(known, identity: identity, at: Bench.start)
            return "touched"
        }
    }

    /// All that can be asked.
    static func view(_ bench: Bench) async throws -> String {
        let journal = bench.journal
        let questions = (0..<5).flatMap { name in
            (1...2).map { Arrival.test("file-\(name)", .test(size: Int64($0), inode: 1)) }
        }
        let known = try await journal.recall(questions, tolerance: 0).map { answer in
            if case .touched(let file) = answer { "touched \(file.id)" } else { "\(answer)" }
        }
        var contents: [Int64?] = []
        for (content, size) in (1...4).flatMap({ content in (1...2).map { (UInt8(content), Int64($0)) } }) {
            let question = ContentQuestion(
                digest: digest(content, size), size: size, route: "all", fields: [:], destinations: ["r2"])
            contents.append(try await journal.originals(question)["r2"]?.job)
        }
        let jobs = try await journal.jobs(FileFilter(limit: 1000)).map(\.lasting)
        let totals = try await journal.totals().map { "\($0.key) \($0.value)" }.sorted()
        let proofs = try await journal.delivered(DeliveredFilter(), after: 0, limit: 100).page.map(\.delivery.id)
        let holds = try await journal.holdsFiles(of: "/in")
        let queue = try await journal.queueCounts().map { "\($0.key) \($0.value)" }.sorted()
        return "\(known)\n\(contents)\n\(jobs)\n\(totals)\n\(proofs)\n\(holds)\n\(queue)"
    }
}
