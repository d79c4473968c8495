import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import InletPipelines
import SystemPackage

extension Run {
    /// `inlet run --dry-run`: prints and counts the plan for each file, as files are found.
    func rehearse(_ config: LoadedConfig) async throws {
        ProcessSetup.ignoreSignals()
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        let destinations = try config.makeDestinations(factory)
        let pool = BlockingPool(name: "dry run", threads: 2)
        do {
            let journal = try ReadOnlyJournal(path: StateDirectory.journal(in: config.settings.stateDirectory))
            var dryRun = DryRun(config.settings.routes, destinations, past: journal.map { .stored($0) }, on: pool)
            var tally = RehearsalSummary()
            for watch in config.settings.watch {
                let isFolder = if case .directory? = FileLook.glance(at: watch.path) { true } else { false }
                if watch.pattern == nil, !isFolder {
                    Console.printError("\(watch.path.display): \(RootCheck.reason(watch.path))")
                    continue
                }
                try await dryRun.run(watch) { finding in
                    tally.add(finding)
                    let text = json ? try Console.json(DryRunReport(finding)) : finding.text
                    if let text { Console.print(text) }
                }
            }
            // Programs count lines themselves.
            if !json { Console.print(tally.text(ignored: dryRun.ignored)) }
        } catch let error as JournalError {
            throw ExitStatus.configuration.saying("\(error)")
        }
    }

}

// One file.
extension DryRun.Finding {
    /// The text for people; nil for a file that is only counted.
    fileprivate var text: String? {
        let path = path.display
        switch verdict {
        case .known, .skipped, .adopted, .unmatched, .irregular: return nil
        case .planned(let plan, let steps): return planned(plan, steps)
        case .rejected(let route, let reason):
            return "\(path)\n" + Console.tint("  rejected by \(route): \(DisplayText.escape(reason))", .bad)
                + notOthers
        case .along(let main): return "\(path)\n  goes with \(main.display)"
        case .awaited(let marker): return "\(path)\n  waits for its marker \(marker.display)"
        case .unreadable(let reason):
            return "\(path)\n" + Console.tint("  cannot be read: \(DisplayText.escape(reason))", .bad)
        }
    }

    private func planned(_ plan: Plan, _ steps: DeliverySteps) -> String {
        var lines = [
            Console.tint(path.display, .strong) + "  \(ByteText.format(size))",
            "  route \(plan.route) to \(steps.text)" + notOthers,
            "  key \(plan.keyText), then \(plan.onSuccess.rawValue)",
        ]
        if let unit { lines.append("  with all of \(unit.display), when that is complete") }
        if let quiet { lines.append("  once it has been quiet for \(DurationText.format(quiet)) more") }
        if plan.dedupe != .off {
            lines.append("  unless a destination has its content (dedupe: \(plan.dedupe.rawValue))")
        }
        return (lines + plan.notes.map { "  note: \(DisplayText.escape($0))" }).joined(separator: "\n")
    }

    /// Why no other route takes it.
    private var notOthers: String {
        let reasons = passed.map { "not \($0.route): \(DisplayText.escape($0.mismatch ?? ""))" }
        return reasons.isEmpty ? "" : " (\(reasons.joined(separator: "; ")))"
    }
}

extension DeliverySteps {
    /// `store, library (once store has it)`
    var text: String {
        steps.map { step in
            step.after.map { "\(step.destination) (once \($0) has it)" } ?? step.destination
        }.joined(separator: ", ")
    }
}

/// The counts of a dry run, with an entry for each route.
private struct RehearsalSummary {
    private var routes: [(name: String, files: Int, bytes: Int64)] = []
    private var others: [String: Int] = [:]

    /// The words for files that would not be sent, by their verdicts.
    private static let words: KeyValuePairs = [
        "along": "with another file", "awaited": "waiting for a marker", "rejected": "rejected",
        "unreadable": "that cannot be read", "known": "known already, and not sent again",
        "adopted": "known as delivered from the first start (existing: adopt)",
        "unmatched": "ignored: no route takes it",
        "skipped": "ignored: there before the first start (existing: skip)",
        "irregular": "ignored: a symlink, pipe, socket or device",
        "ignored": "ignored: its name is on the list of names that are never a user's file",
    ]

    mutating func add(_ finding: DryRun.Finding) {
        guard case .planned(let plan, _) = finding.verdict else {
            return others[DryRunReport.Verdict(finding.verdict).rawValue, default: 0] += 1
        }
        let index = routes.firstIndex { $0.name == plan.route } ?? routes.endIndex
        if index == routes.endIndex { routes.append((plan.route, 0, 0)) }
        routes[index].files += 1
        routes[index].bytes += finding.size
    }

    func text(ignored: (files: Int, folders: Int)) -> String {
        let files = routes.reduce(0) { $0 + $1.files }
        let bytes = routes.reduce(0) { $0 + $1.bytes }
        let rows: [[StyledText]] = routes.map {
            [StyledText($0.name), "\($0.files)", StyledText(ByteText.format($0.bytes))]
        }
        let counts = others.merging(["ignored": ignored.files]) { $1 }
        var said = Self.words.compactMap { verdict, words in
            counts[verdict].flatMap { $0 > 0 ? "\($0.counted("file")) \(words)" : nil }
        }
        if ignored.folders > 0 {
            said.append("\(ignored.folders.counted("folder")) of such names, with what is in them")
        }
        let table =
            rows.isEmpty ? [] : [Console.table([.text("ROUTE"), .number("FILES"), .number("SIZE")], rows, indent: 2)]
        return
            (["\(files.counted("file")) would be sent, \(ByteText.format(bytes))"] + table + said
            + ["Nothing was sent, and nothing was written."]).joined(separator: "\n")
    }
}
