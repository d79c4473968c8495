import Foundation
import InletAgent
import InletConfig
import InletCore
import InletJournal
import InletLinux
import InletPipelines
import SystemPackage

/// `inlet run --dry-run`: prints what would be done, file by file as they are found, and counts it.
enum Rehearsal {
    static func run(_ config: LoadedConfig, json: Bool) async throws {
        ProcessSetup.ignoreSignals()
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        let destinations = try config.makeDestinations(factory)
        let pool = BlockingPool(name: "dry run", threads: 2)
        do {
            let journal = try JournalGlance(path: StateDirectory.journal(in: config.settings.stateDirectory))
            var dryRun = DryRun(config.settings.routes, destinations, journal: journal, on: pool)
            var tally = RehearsalTally()
            for watch in config.settings.watch {
                if watch.pattern == nil, !isFolder(watch.path) {
                    Console.printError("\(watch.path.display): \(RootInspection.reason(watch.path))")
                    continue
                }
                try await dryRun.run(watch) { finding in
                    tally.add(finding)
                    let text = json ? try RehearsalLine.json(finding) : RehearsalLine.text(finding)
                    if let text { Console.print(text) }
                }
            }
            // Programs count for themselves.
            if !json { Console.print(tally.text(ignored: dryRun.ignored)) }
        } catch let error as JournalError {
            Console.printError("inlet: \(error)")
            throw ExitStatus.configuration
        }
    }

    private static func isFolder(_ path: FilePath) -> Bool {
        // `RootInspection` says why it cannot be looked at.
        if case .directory? = try? FileLook.look(at: path) { true } else { false }
    }
}

/// One file of a dry run.
enum RehearsalLine {
    /// For people; nil for what is only counted.
    static func text(_ finding: DryRun.Finding) -> String? {
        let path = finding.path.display
        switch finding.verdict {
        case .known, .skipped, .adopted, .unmatched, .irregular: return nil
        case .planned(let plan, let steps): return planned(finding, plan, steps)
        case .rejected(let route, let reason):
            return "\(path)\n" + Console.tint("  rejected by \(route): \(DisplayText.escape(reason))", .bad)
                + passed(finding)
        case .along(let main): return "\(path)\n  goes with \(main.display)"
        case .awaited(let marker): return "\(path)\n  waits for its marker \(marker.display)"
        case .unreadable(let reason):
            return "\(path)\n" + Console.tint("  cannot be read: \(DisplayText.escape(reason))", .bad)
        }
    }

    private static func planned(_ finding: DryRun.Finding, _ plan: Plan, _ steps: DeliverySteps) -> String {
        let targets = steps.steps.map { step in
            step.after.map { "\(step.destination) (once \($0) has it)" } ?? step.destination
        }
        var lines = [
            Console.tint(finding.path.display, .strong) + "  \(ByteText.format(finding.size))",
            "  route \(plan.route) to \(targets.joined(separator: ", "))" + passed(finding),
            "  key \(DisplayText.escape(plan.key)), then \(plan.onSuccess.rawValue)",
        ]
        if let unit = finding.unit { lines.append("  with all of \(unit.display), when that is complete") }
        if let quiet = finding.quiet { lines.append("  once it has been quiet for \(DurationText.format(quiet)) more") }
        if plan.dedupe != .off {
            lines.append("  unless a destination has its content (dedupe: \(plan.dedupe.rawValue))")
        }
        return (lines + plan.notes.map { "  note: \(DisplayText.escape($0))" }).joined(separator: "\n")
    }

    /// Why it is not another route's.
    private static func passed(_ finding: DryRun.Finding) -> String {
        let reasons = finding.passed.map { "not \($0.route): \(DisplayText.escape($0.mismatch ?? ""))" }
        return reasons.isEmpty ? "" : " (\(reasons.joined(separator: "; ")))"
    }

    /// For programs: every file, whatever is done with it.
    private struct Record: Encodable {
        var path: String
        var size: Int64
        var verdict: String
        var route: String?
        var destinations: [String]?
        var key: String?
        var on_success: String?
        var reason: String?
        var job: Int64?
        var unit: String?
    }

    static func json(_ finding: DryRun.Finding) throws -> String {
        var record = Record(path: finding.path.display, size: finding.size, verdict: "")
        record.unit = finding.unit?.display
        switch finding.verdict {
        case .planned(let plan, let steps):
            (record.verdict, record.route, record.key) = ("planned", plan.route, plan.key)
            (record.destinations, record.on_success) = (steps.destinations, plan.onSuccess.rawValue)
        case .rejected(let route, let reason):
            (record.verdict, record.route, record.reason) = ("rejected", route, reason)
        case .unmatched: record.verdict = "unmatched"
        case .known(let job, let state):
            (record.verdict, record.job, record.reason) = ("known", job, state.rawValue)
        case .skipped: record.verdict = "skipped"
        case .adopted: record.verdict = "adopted"
        case .along(let main): (record.verdict, record.reason) = ("along", main.display)
        case .awaited(let marker): (record.verdict, record.reason) = ("awaited", marker.display)
        case .irregular: record.verdict = "irregular"
        case .unreadable(let reason): (record.verdict, record.reason) = ("unreadable", reason)
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: JSONString.masked(Array(try encoder.encode(record))), as: UTF8.self)
    }
}

/// What a dry run found, all together. As many entries as there are routes.
struct RehearsalTally {
    private var routes: [(name: String, files: Int, bytes: Int64)] = []
    private var rejected = 0
    private var along = 0
    private var awaited = 0
    private var known = 0
    private var adopted = 0
    private var unreadable = 0
    private var unmatched = 0
    private var skipped = 0
    private var irregular = 0

    mutating func add(_ finding: DryRun.Finding) {
        switch finding.verdict {
        case .planned(let plan, _):
            let index = routes.firstIndex { $0.name == plan.route } ?? routes.endIndex
            if index == routes.endIndex { routes.append((plan.route, 0, 0)) }
            routes[index].files += 1
            routes[index].bytes += finding.size
        case .rejected: rejected += 1
        case .along: along += 1
        case .awaited: awaited += 1
        case .known: known += 1
        case .adopted: adopted += 1
        case .unreadable: unreadable += 1
        case .unmatched: unmatched += 1
        case .skipped: skipped += 1
        case .irregular: irregular += 1
        }
    }

    func text(ignored: (files: Int, folders: Int)) -> String {
        let files = routes.reduce(0) { $0 + $1.files }
        let bytes = routes.reduce(0) { $0 + $1.bytes }
        let rows = routes.map { ["  \($0.name)", Self.count($0.files, "file"), ByteText.format($0.bytes)] }
        let others = [
            (along, "with another file"), (awaited, "waiting for a marker"), (rejected, "rejected"),
            (unreadable, "that cannot be read"), (known, "known already, and not sent again"),
            (adopted, "known as delivered from the first start (existing: adopt)"),
            (unmatched, "ignored: no route takes it"),
            (skipped, "ignored: there before the first start (existing: skip)"),
            (irregular, "ignored: a symlink, pipe, socket or device"),
            (ignored.files, "ignored: its name is on the list of names that are never a user's file"),
        ]
        var said = others.filter { $0.0 > 0 }.map { "\(Self.count($0.0, "file")) \($0.1)" }
        if ignored.folders > 0 {
            said.append("\(Self.count(ignored.folders, "folder")) of such names, with what is in them")
        }
        let table = rows.isEmpty ? [] : [Console.table(rows)]
        return
            (["\(Self.count(files, "file")) would be sent, \(ByteText.format(bytes))"] + table + said
            + ["Nothing was sent, and nothing was written."]).joined(separator: "\n")
    }

    private static func count(_ number: Int, _ word: String) -> String { "\(number) \(word)\(number == 1 ? "" : "s")" }
}
