import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import InletPipelines
import SystemPackage

struct RouteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "route",
        abstract: "Show which route takes a file, why, and the key it would get. Sends nothing.",
        discussion: """
            The file need not exist; then its size counts as 0 and its time as now.

            Examples:
              inlet route /srv/drop/gigs/2026/song.mp4
              inlet route /srv/drop/*.jpg
            """)

    @OptionGroup var options: ConfigOption
    @Argument(help: "The files.", completion: .file()) var files: [NamedFiles]
    @Flag(help: "Print one JSON object a line: one for each file.") var json = false

    func run() async throws {
        let config = try options.load()
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        let destinations = config.settings.destinations.reduce(into: [:]) { made, destination in
            made[destination.name] = config.destination(destination.name, factory)
        }
        var isTaken = true
        var names = NameReader(files, from: .workingDirectory)
        while let file = names.next(1).first {
            let summary = try await RouteSummary(file, config.settings, destinations)
            var known: [StyledText] = []
            if let plan = summary.plan { known = try await Self.duplicates(of: plan, summary.size, config) }
            if json {
                var report = summary.report
                report.why += known.map { String($0.text(hasColour: false).trimmingPrefix(while: \.isWhitespace)) }
                Console.print(try Console.json(report))
            } else {
                let lines = (summary.said + known).map { $0.text(hasColour: Console.hasColour) }
                Console.print(lines.joined(separator: "\n"))
            }
            isTaken = isTaken && summary.isTaken
        }
        if !isTaken { throw ExitStatus.failed.code }
    }

    /// A file that would not be sent, as a running agent knows from its content.
    private static func duplicates(of plan: Plan, _ size: Int64, _ config: LoadedConfig) async throws -> [StyledText] {
        guard plan.dedupe != .off, let digest = plan.digests.sha256 else { return [] }
        guard let agent = try await ControlAccess.runningAgent(config) else {
            return ["  note     start the agent to see whether it is a duplicate"]
        }
        defer { agent.shutdown() }
        let found = try await agent.ask(
            Endpoints.contents,
            body: ContentQuery(
                digest: digest, size: size, route: plan.route, fields: plan.with, destinations: plan.destinations))
        let end = plan.dedupe == .skip ? "would be skipped" : "would be linked"
        return found.map { content in
            let place = found.count == 1 && plan.destinations.count == 1 ? "" : " to \(content.destination)"
            let first = "job \(content.job), \(content.path), which is there as \(DisplayText.escape(content.key))"
            return StyledText("  \(end)\(place): same content as \(first)", .warning)
        }
    }
}

/// Describes what the routes would do with one file.
struct RouteSummary {
    /// Line by line.
    private(set) var said: [StyledText]
    private(set) var isTaken = false
    /// Describes the delivery of a file whose content is known.
    private(set) var plan: Plan?

    private let path: FilePath
    private let table: RouteTable
    private let destinations: [String: Destination]
    private let arrival: FoundFile
    private var facts = FileProperties()
    private var isMissing = false

    var size: Int64 { arrival.identity.size }

    /// - Parameter destinations: the usable ones, by name.
    init(_ path: FilePath, _ settings: Settings, _ destinations: [String: Destination]) async throws {
        (self.path, self.destinations, table) = (path, destinations, RouteTable(settings.routes))
        said = [StyledText(path.display, .strong)]
        var identity: FileIdentity?
        do throws(SystemError) {
            let look = try FileLook.look(at: path)
            identity = look.identity
            isMissing = look == .missing
            if identity == nil {
                said.append("  (\(look == .missing ? "not there" : "no regular file"): taken as an empty file)")
            }
        } catch {
            said.append(StyledText("  (taken as an empty file, because it cannot be read: \(error))", .warning))
        }
        let place = RouteSource(path, in: settings.watch)
        // The table notes where a proxy is needed, and the agent reports where it finds none.
        let volume = (try? VolumeFinder().identity(of: path)).map { Volume(name: $0.name) }
        arrival = place.arrival(identity, volume: volume, at: .now)
        if place.root == nil {
            said.append(StyledText("  not below any watched folder; only 'inlet send' could take it", .warning))
        }
        if let ignored = place.ignoredBecause {
            said.append(StyledText("  ignored: \(ignored)", .warning))
            return
        }
        if let trouble = await learnFirst() { said.append(StyledText("  \(trouble)", .warning)) }
        said += table.trace(arrival, facts: facts).map { trace in
            trace.mismatch == nil
                ? StyledText("  route \(trace.route) takes it", .good)
                : "  route \(trace.route): \(DisplayText.escape(trace.mismatch ?? ""))"
        }
        let route = table.route(for: arrival.path, size: size, facts: facts)
        let mains = mains
        said += mains + (route.map { sets(of: $0) } ?? [])
        let decision = try await decision()
        // A companion needs no route of its own.
        if !mains.isEmpty, route == nil { isTaken = true } else { said += decision }
    }

    /// The files that it travels with.
    private var mains: [StyledText] {
        table.belongings(of: arrival.path).filter { belonging in
            FileLook.glance(at: arrival.root.pushing(belonging.main))?.identity != nil
        }.map { "  goes with \($0.main.display), by route \($0.route.name)" }
    }

    /// The other files that belong to it.
    private func sets(of route: Route) -> [StyledText] {
        let unit: StyledText? = route.unit(of: arrival.path).map { unit in
            let marker = unit.appending(Completion.folderMarker).display
            let when = route.completion == .marker ? "there is a \(marker)" : "the folder is quiet"
            return "  unit     \(unit.display): Inlet sends all of it when \(when)"
        }
        let markers = route.companions(of: arrival.path).filter { $0.kind == .marker }
        return [unit].compactMap(\.self) + markers.map { "  waits for its marker \($0.path.display)" }
    }

    private mutating func decision() async throws -> [StyledText] {
        // A file gets its number for {seq} only when it is admitted.
        facts.sequence = 0
        do {
            facts.add(
                try await SidecarFile.metadata(
                    beside: arrival, table, facts: facts, on: Self.hashing.pool))
        } catch let error as ConfigErrors {
            return [StyledText("  rejected: \(SidecarFile.reason(error))", .bad)]
        } catch {
            return [StyledText("  its sidecar cannot be read: \(error)", .bad)]
        }
        while true {
            switch table.plan(arrival, facts: facts, at: .now) {
            case .unmatched: return [StyledText("  no route takes it: Inlet would ignore it", .warning)]
            case .rejected(_, let reason): return [StyledText("  rejected: \(reason)", .bad)]
            case .needs(let wanted) where wanted.contains(.captured) && isMissing: facts.captured = .unknown
            case .needs(let wanted):
                do {
                    try await Self.hashing.learn(wanted, of: RootedPath("", path), &facts)
                } catch let error as SystemError {
                    return ["  \(Self.unreadable(wanted)), and the file cannot be read: \(error)"]
                }
            case .plan(let plan):
                (isTaken, self.plan) = (true, plan)
                return lines(of: plan) + derivations(plan)
            }
        }
    }

    private static let hashing = Hashing(pool: BlockingPool(name: "route", threads: 1))

    /// Reads the file's content type and its camera, where a route needs them. - Returns: why that fails.
    private mutating func learnFirst() async -> String? {
        if isMissing, table.routes.contains(where: { $0.match.facts.union($0.facts).contains(.camera) }) {
            facts.camera = Camera(system: CameraStructure(of: path))
        }
        do {
            try await Self.hashing.learnFirst(of: arrival, by: table, at: RootedPath("", path), &facts)
            return nil
        } catch let error as SystemError {
            return "routes ask what it holds, and it cannot be read (\(error)): the first that might take it counts"
        } catch {
            return "\(error)"
        }
    }

    private static func unreadable(_ wanted: Set<FileProperty>) -> String {
        if wanted.contains(.mediaType) { return "its route asks for its content type" }
        if wanted.contains(where: { $0.algorithm != nil }) { return "its route needs a checksum of the file" }
        return wanted.contains(.captured) ? "its key needs the date inside of the file" : "its route needs its camera"
    }

    private func line(_ window: DeliveryWindow) -> StyledText {
        let fate =
            if !window.concerns(size: size) {
                "not for this one"
            } else if let opening = window.opening(at: .now) {
                "this one would wait until \(opening.rfc3339(in: window.zone))"
            } else {
                "open now"
            }
        return "  window   \(window.text): \(fate)"
    }

    private func steps(of plan: Plan) -> DeliverySteps { DeliverySteps(plan, of: arrival.path) { destinations[$0] } }

    /// For programs.
    var report: RouteReport {
        var report = RouteReport(
            path: path.display, matched: isTaken,
            why: said.dropFirst().map { $0.text(hasColour: false).trimmingPrefix(while: \.isWhitespace) }.map(
                String.init))
        guard let plan else { return report }
        (report.route, report.category, report.media_type) = (plan.route, plan.category, plan.mediaType)
        report.deliveries = steps(of: plan).steps.map {
            RouteReport.Delivery(destination: $0.destination, key: plan.key(at: $0.destination), after: $0.after)
        }
        return report
    }

    private func lines(of plan: Plan) -> [StyledText] {
        let steps = steps(of: plan)
        var lines: [StyledText] = [
            "  category \(plan.category), type \(plan.mediaType)", "  key      \(plan.keyText)",
            "  to       \(steps.text)",
            "  then     \(plan.onSuccess.rawValue); on failure \(plan.onFailure.rawValue)",
        ]
        if let window = plan.window { lines.append(line(window)) }
        if !plan.labels.isEmpty { lines.append("  labels   \(JobReport.pairs(plan.labels))") }
        let readings = plan.destinations.compactMap { destinations[$0]?.reading?(arrival.path, plan.with) }
        lines += plan.with.sorted { $0.key < $1.key }.map { name, text in
            let decided = readings.lazy.compactMap { $0.decided[name] }.first
            return StyledText("  with     \(name): \(text)" + (decided.map { " (\($0))" } ?? ""))
        }
        if case .at(let time, let origin) = facts.captured { lines.append("  captured \(time.display) (\(origin))") }
        if let camera = facts.camera?.name { lines.append("  camera   \(DisplayText.escape(camera))") }
        if facts.card != nil { lines.append("  note     only the agent knows the labels of the card") }
        lines += plan.notes.map { "  note     \($0)" }
        return lines + readings.compactMap(\.objection).map { StyledText("  warning  \($0)", .warning) }
    }

    /// The files that programs would make of it (`derive:`).
    private func derivations(_ plan: Plan) -> [StyledText] {
        let storing = plan.destinations.filter { destinations[$0]?.takesSidecars != false }.joined(separator: ", ")
        return table.derivations(of: arrival, facts: facts).map { rule in
            let word = rule.command.first ?? ""
            guard let program = ProgramFinder.find(word) else {
                return StyledText(
                    "  derives  \(rule.name): there is no program '\(word)'; the file goes without it", .warning)
            }
            let companion = Companion(path: arrival.path, kind: .derived, ending: rule.suffix)
            let key = companion.key(beside: plan.key, of: arrival.path)
            return "  derives  \(rule.name): \(DisplayText.escape(key)), made by \(program.display), to \(storing)"
        }
    }
}
