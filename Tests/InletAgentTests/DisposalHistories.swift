import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletJournal

/// One history of a file on its way out, drawn from a seed: what people do to it, which calls fail, when its disk goes and
/// comes back, and after which steps the process dies.
struct DisposalHistory {
    /// A promise that did not hold.
    struct Broken: Error, CustomStringConvertible {
        let description: String
    }

    final class Log { var lines: [String] = [] }

    private static let codes: [Errno] = [
        .noSuchFileOrDirectory, .ioError, .permissionDenied, .noSpace, .staleNFSFileHandle, .improperLink,
    ]
    /// So often may anything happen; then all is quiet, and the file must come to its end.
    private static let most = 8
    private static let mostTurns = 60

    /// What happens most in it: of everything a little finds less than of one thing much.
    private enum Theme: CaseIterable { case writers, people, disk, calls, deaths, all }

    let seed: UInt64
    private let theme: Theme
    private(set) var model: DisposalModel
    private var random: SeededGenerator
    private var left: Int
    private var end: (disposition: String, state: FileState?, place: FilePath?)?

    /// To tell takes longer than all else.
    private let isTold: Bool
    /// What was done, for people.
    let log = Log()

    init(seed: UInt64, isTold: Bool = false) {
        (self.seed, self.isTold) = (seed, isTold)
        var random = SeededGenerator(seed: seed)
        theme = Theme.allCases.randomElement(using: &random) ?? .all
        model = DisposalModel(DisposalModel.Setting(&random))
        left = Int.random(in: 0...Self.most, using: &random)
        self.random = random
    }

    mutating func play() throws {
        if chance(0.05) {
            model.job.file.intent = [UInt8(ascii: "{")]
            say("its intent is damaged")
        }
        for _ in 0..<Self.mostTurns where end == nil {
            try turn()
            model.restart()
            if draw(0.1 * often(.deaths)) { cutPower() }
        }
        guard end != nil else { throw Broken(description: "it comes to no end") }
        // An end is an end, and its intent is forgotten.
        model.cutPower()
        try judge()
    }

    private mutating func cutPower() {
        let count = Int.random(in: 0...model.undoable, using: &random)
        model.cutPower(undoing: count)
        say("the power goes: \(count) changes of names are undone")
    }

    /// From the first look to an end, a wait, an error or the process' death.
    private mutating func turn() throws {
        if left == 0 { calm() }
        var disposal = Disposal(model.job, model.places)
        var seen = DisposalStepResult.begun
        for _ in 0..<500 {
            happen()
            let step = disposal.next(seen, at: WallTime(milliseconds: model.now))
            switch step {
            case .wait(let until, let note):
                say("waits: \(note)")
                return pass(until: until)
            case .fail(let error):
                if case .misstep? = error as? DisposalError { throw Broken(description: "a misstep") }
                say("fails: \(error)")
                if left == 0, case .unreadableIntent? = error as? DisposalError { end = ("", nil, nil) }
                return pass(until: WallTime(milliseconds: model.now + 60_000))
            case .end(let disposition, let state, let place):
                say("ends: \(disposition)")
                if draw(0.1 * often(.deaths)) { return say("dies") }
                end = (disposition, state, place)
                return
            default: break
            }
            if draw(0.05 * often(.deaths)) {
                say("dies before \(step.word)")
                if case .copy = step, chance(0.7) { model.dieInCopy() }
                if chance(0.3) { model.dieInRename(step) }
                return
            }
            happen()
            seen = take(step)
            if draw(0.05 * often(.deaths)) { return say("dies after it") }
        }
        throw Broken(description: "it goes round in circles")
    }

    /// Its call may fail, instead of being made or although it was.
    private mutating func take(_ step: DisposalStep) -> DisposalStepResult {
        guard draw(0.06 * often(.calls)), let code = Self.codes.randomElement(using: &random) else {
            let seen = model.take(step)
            say("\(step.word): \(seen)")
            return seen
        }
        let isMade = chance(0.3) && !step.isLook
        say("\(step.word) fails by \(code)\(isMade ? ", and was done" : "")")
        return model.take(step, failing: code, afterwards: isMade)
    }

    /// Nobody does anything any more.
    private mutating func calm() {
        model.isRootHere = true
        model.writer = nil
        model.needingJob = nil
    }

    private mutating func pass(until: WallTime) {
        model.now = max(model.now, until.milliseconds) + 1
        // Who writes from another machine is done before the time is over for which a file is held.
        if model.setting.areWritersUnknown { model.writer = nil }
    }

    private mutating func chance(_ probability: Double) -> Bool { random.fraction() < probability }

    /// Whether one of the things that may happen does.
    private mutating func draw(_ probability: Double) -> Bool {
        guard left > 0, chance(probability) else { return false }
        left -= 1
        return true
    }

    private func say(_ line: @autoclosure () -> String) { if isTold { log.lines.append(line()) } }

    // MARK: - People

    private mutating func happen() {
        if draw(0.02 * often(.disk)) {
            model.isRootHere.toggle()
            say("its disk \(model.isRootHere ? "comes" : "goes")")
        }
        if draw(0.01) {
            model.needingJob = model.needingJob == nil ? 9 : nil
            say("a younger job \(model.needingJob == nil ? "ends" : "comes")")
        }
        if draw(0.03 * often(.writers)) { writes() }
        if draw(0.03 * often(.people)) { works() }
    }

    private func often(_ theme: Theme) -> Double { self.theme == theme ? 4 : self.theme == .all ? 1 : 0.3 }

    /// Somebody has it open, edits it as often as not, and closes it.
    private mutating func writes() {
        guard model.isRootHere else { return }
        if model.writer == nil { return open() }
        if chance(0.6) { return write(model.writer?.inode) }
        model.writer = nil
        say("it is closed")
    }

    private mutating func works() {
        guard model.isRootHere else { return }
        switch Int.random(in: 0..<5, using: &random) {
        case 0:
            let links = model.files.filter { $0.key.lastComponent?.string.hasPrefix("link") == true }.map(\.value)
            write([model.files[DisposalModel.own], links.first].compactMap(\.self).randomElement(using: &random))
        case 1: moveAside()
        case 2: linkIt()
        case 3: drop()
        default:
            let isRestored = chance(0.5)
            model.replace(DisposalModel.own, restoringTimes: isRestored)
            say("it is replaced\(isRestored ? ", its time put back" : "")")
        }
    }

    private mutating func drop() {
        guard let file = model.files[DisposalModel.own] else { return }
        model.drop(file, DisposalModel.own)
        say("it is removed")
    }

    private mutating func write(_ file: DisposalModel.Inode?) {
        guard let file else { return }
        let isHidden = model.files[DisposalModel.own] !== file
        // Without a checksum nothing tells of such an edit after a crash: a limit that is known.
        let isRestored = chance(0.5) && (model.setting.hasChecksum || !isHidden)
        model.edit(file, restoringTimes: isRestored)
        say("it is edited\(isHidden ? ", though it has another name" : "")\(isRestored ? ", its time put back" : "")")
    }

    private mutating func moveAside() {
        let aside = DisposalModel.root.pushing("sub/b")
        guard let file = model.files[DisposalModel.own], model.files[aside] == nil else { return }
        model.files[DisposalModel.own] = nil
        model.link(file, aside)
        say("it is renamed")
    }

    private mutating func linkIt() {
        let path = DisposalModel.root.pushing("sub/link")
        guard let file = model.files[DisposalModel.own], model.files[path] == nil else { return }
        model.link(file, path)
        say("it gets a second name")
    }

    private mutating func open() {
        // Where writers are unknown, a failed file goes to its quarantine at once; a copy of it cannot be a writer's.
        let setting = model.setting
        if setting.areWritersUnknown, setting.action == .quarantine, setting.isOtherDisk { return }
        guard let file = model.files[DisposalModel.own] else { return }
        model.writer = (file, model.now)
        say("it is opened for writing")
    }

    // MARK: - Judging

    private func judge() throws {
        let hidden = model.files.keys.filter(DisposalModel.isPrivate)
        guard hidden.isEmpty else { throw Broken(description: "it is hidden for good: \(hidden)") }
        for content in model.owed {
            let held = model.files.values.count { $0.content == content }
            let isProved =
                content == DisposalModel.delivered && model.setting.action == .delete && model.setting.hasCopies
            if held == 0, !isProved { throw Broken(description: "'\(content)' is lost") }
            if held > model.most[content] ?? 1 { throw Broken(description: "'\(content)' is there \(held) times") }
        }
        let halves = model.files.filter { $0.value.content == "half" }.keys
        guard halves.isEmpty else { throw Broken(description: "a part of a copy is left: \(halves)") }
        if let end, end.state == nil, end.place == nil, end.disposition != "",
            model.files[DisposalModel.own]?.number == DisposalModel.number
        {
            throw Broken(description: "'\(end.disposition)' is said of a file that lies there")
        }
        guard let end, end.disposition.hasPrefix("archived") || end.disposition.hasPrefix("quarantined") else { return }
        guard let place = end.place, let file = model.files[place] else {
            throw Broken(description: "it is not where it is said to be: \(end.disposition)")
        }
        // Into quarantine goes also what was only touched; and who gave it a second name may edit it by that in an archive, too.
        let isShared = file.device == 1 && model.most[file.content] != nil
        if end.disposition.hasPrefix("archived"), file.content != DisposalModel.delivered, !isShared {
            throw Broken(description: "'\(file.content)' is archived, and nobody has proved it")
        }
    }
}

extension DisposalStep {
    /// Its name, and what of it fits on a line.
    fileprivate var word: String {
        if case .look(let name, _) = self { return "look \(name)" }
        return String("\(self)".prefix { $0 != "(" })
    }

    /// Whether it changes nothing.
    fileprivate var isLook: Bool {
        switch self {
        case .look, .compare, .proveLinks, .proveCopies, .askWriter, .askRoot, .chooseTarget, .compareCopy: true
        default: false
        }
    }
}

/// Histories of files on their way out, drawn from seeds; `INLET_DISPOSAL_SEED` plays one again and tells it.
@Suite struct DisposalHistoryTests {
    private static let seed = ProcessInfo.processInfo.environment["INLET_DISPOSAL_SEED"].flatMap { UInt64($0) }
    /// Those that are always played, and others that nobody has seen yet.
    private static func seeds(_ full: Int) -> [UInt64] {
        if let seed { return [seed] }
        let new = UInt64.random(in: 1_000_000...1_000_000_000_000)
        let half = UInt64(Load.of(full) / 2)
        return Array(1...half) + Array(new..<new + half)
    }

    @Test func `whatever happens, nothing is lost, hidden for good, or there twice: in memory`() {
        for seed in Self.seeds(200_000) {
            var history = DisposalHistory(seed: seed)
            do {
                try history.play()
            } catch {
                var told = DisposalHistory(seed: seed, isTold: true)
                // It fails again.
                try? told.play()
                let lines = told.log.lines.joined(separator: "\n")
                Issue.record("INLET_DISPOSAL_SEED=\(seed): \(told.model.setting): \(error)\n\(lines)")
                return
            }
        }
    }

    @Test(.enabled(if: isOtherFileSystem("/dev/shm")))
    func `whatever happens, nothing is lost, hidden for good, or there twice: on a disk`() async throws {
        for seed in Self.seeds(2000) {
            try await play(seed, isFailing: false)
            try await play(seed, isFailing: true)
        }
    }

    /// - Parameter isFailing: whether calls fail besides.
    private func play(_ seed: UInt64, isFailing: Bool) async throws {
        var random = SeededGenerator(seed: seed)
        var setting = DisposalModel.Setting(&random)
        (setting.isLinked, setting.areWritersUnknown) = (false, false)
        (setting.isOrdered, setting.hasCopies) = (false, true)
        var folder = try await DisposalFolder(setting)
        let acts = DisposalFolder.acts(&random)
        var end: String?
        for act in acts where end == nil {
            let before = folder
            let faults = isFailing ? random.next() : nil
            try await folder.act(act) { end = try await Self.dispose(before, faults) }
        }
        try folder.calm()
        var last = "it waits"
        for _ in 0..<40 where end == nil {
            do {
                end = try await Self.dispose(folder)
            } catch DisposalError.unreadableIntent {
                end = "unreadable"
            } catch {
                last = "\(error)"
            }
        }
        do {
            if end == nil { throw DisposalHistory.Broken(description: "it comes to no end: \(last)") }
            try folder.judge(end)
        } catch {
            Issue.record("INLET_DISPOSAL_SEED=\(seed): \(isFailing ? "failing, " : "")\(setting): \(acts): \(error)")
        }
    }

    /// - Returns: nil while it must wait.
    private static func dispose(_ folder: DisposalFolder, _ faults: UInt64? = nil) async throws -> String? {
        let (bench, job) = (folder.bench, try await folder.job())
        var runner = bench.runner(job)
        if let faults { return try await folder.whileFailing(faults) { try await runner.run().disposition } }
        return try await runner.run().disposition
    }
}
