package import InletConfig
package import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization
package import SystemPackage

/// Changes the configuration file for people at the page: the text in place, with the checks of a start, one change at
/// a time. The file's former versions stay beside it.
package final class ConfigEditor: Sendable {
    /// A person's order for the file.
    package enum Wish: Sendable, Equatable {
        case edits([ConfigEdit])
        /// The former version of this name.
        case version(String)
    }

    /// The file as it is, for a form.
    package struct Form: Sendable {
        package var file: FilePath
        /// Of the file's text: a change is only made to the text that it began with.
        package var hash: String
        package var entries: [ConfigEdit.List: [ConfigText.Entry]] = [:]
        /// Why the text cannot be changed here.
        package var errors: [ConfigFault] = []
        /// Why nothing can be written here; the change can still be tried, and its lines be pasted.
        package var objection: String?
        /// Of former texts, the newest first.
        package var versions: [String] = []
    }

    /// The effects of a change.
    package struct Trial: Sendable {
        package var diff: [TextDiff.Line] = []
        package var changes: [ConfigChange] = []
        package var warnings: [ConfigFault] = []
        /// Why the change must not be made; empty for a good one.
        package var errors: [ConfigFault] = []
        /// Why it takes effect only after a restart.
        package var restart: String?
        /// Whether the values were checked, and not only the text.
        package var isChecked = false
        /// The plans for the files that are there.
        package var files: FileTrial?
    }

    package struct FileTrial: Sendable {
        package var findings: [DryRun.Finding] = []
        /// Removes from a text what was filled in for `${…}`.
        package var redact: @Sendable (String) -> String = { $0 }
        package var (planned, known, others) = (0, 0, 0)
        /// Whether there are more files than were looked at.
        package var isPartial = false
    }

    package enum Fault: Error, Sendable {
        /// The file has another text than the one that the change began with.
        case changed([TextDiff.Line])
        case refused(String)
    }

    /// A change that was written.
    package struct Applied: Sendable {
        package var outcome: ReloadOutcome
        /// Why it takes effect only after a restart; then nothing was reloaded.
        package var restart: String?
    }

    /// Former versions of the file that are kept.
    package static let mostVersions = 10

    private let shared: Shared
    private let reload: Reload
    private let confinement: ConfinementReport?
    /// One thread: two people's changes follow each other.
    private let pool = BlockingPool(name: "config", threads: 1)
    /// The texts with which the last forms began, for showing what somebody else changed since.
    private let begun = Mutex<[(hash: String, bytes: [UInt8])]>([])
    /// Whether a trial lists folders: one that hangs must not gather others behind it.
    private let isListing = Mutex(false)
    private static let mostBegun = 4

    init(_ shared: Shared, _ reload: Reload, _ confinement: ConfinementReport?) {
        (self.shared, self.reload, self.confinement) = (shared, reload, confinement)
    }

    private var source: any ReloadSource { reload.source }
    private var file: FilePath { source.config.file }

    /// The JSON schema of the file.
    package var schema: String { ConfigSchema.json(types: source.types) }

    // MARK: - Looking

    /// - Throws: the reason that the file cannot be read.
    package func form() async throws -> Form {
        try await pool.run { [self] in
            let bytes = try DurableFile.read(file, limit: ConfigFile.maximumBytes)
            var form = Form(
                file: file, hash: Self.hash(bytes), objection: objection(), versions: versions(except: bytes))
            remember(form.hash, bytes)
            do throws(ConfigErrors) {
                let text = try ConfigText(bytes, types: source.types, file: file.display)
                for list in ConfigEdit.List.allCases { form.entries[list] = text.entries(list) }
            } catch {
                form.errors = error.list.map { ConfigFault($0) }
            }
            return form
        }
    }

    /// The person for whom a change is tried.
    package enum Trust: Sendable {
        /// Gets the lines and nothing else: an error could tell what a file holds that a new value names.
        case reader
        /// The values are checked too, where no new one names a variable or a file.
        case person
        /// May make the change, and gets the plans for the files that are there.
        case editor
    }

    /// Tries a change without making it.
    ///
    /// - Throws: `Fault`.
    package func trial(of wish: Wish, since hash: String, for trust: Trust) async throws -> Trial {
        let (new, compared) = try await pool.run { [self] in
            let (old, new) = try texts(wish, hash)
            return (new, Trial(diff: TextDiff.lines(from: side(old), to: side(new))))
        }
        let mayEdit = trust == .editor && objection() == nil
        guard mayEdit || (trust != .reader && !wish.namesSources) else { return compared }
        var trial = compared
        trial.isChecked = true
        let prepared: PreparedReload
        do throws(ConfigErrors) {
            prepared = try await pool.run { [self] () throws(ConfigErrors) in try check(new, wish) }
        } catch {
            trial.errors = error.list.map { ConfigFault($0) }
            return trial
        }
        trial.changes = changes(to: prepared)
        trial.warnings = prepared.config.warnings.map { ConfigFault($0) }
        trial.restart = source.restartReason(prepared.config).map(prepared.config.redacted)
        if mayEdit { trial.files = try await files(prepared) }
        return trial
    }

    private func changes(to prepared: PreparedReload) -> [ConfigChange] {
        ConfigDiff.changes(from: reload.running, to: prepared.config, types: source.types)
    }

    /// The checks of a start, and some more: a login at the page must not become a way to run programs.
    private func check(_ text: [UInt8], _ wish: Wish) throws(ConfigErrors) -> PreparedReload {
        let prepared = try source.check(text)
        func plan(_ config: LoadedConfig) -> AccessPlan { AccessPlan(config, home: nil) { _ in nil } }
        let next = plan(prepared.config)
        if let program = next.beyond(plan(reload.running).commands) {
            throw prepared.config.refusal("the program '\(program)' is new; put it into the file itself")
        }
        // Its names could be those of the configuration, or of a former version.
        if let place = next.needs.first(where: { $0.mayWrite && $0.kind == .coming && folder.isWithin($0.path) }) {
            throw prepared.config.refusal(
                "files that arrive in \(place.path.display) could replace the configuration, which lies below it")
        }
        return prepared
    }

    private func texts(_ wish: Wish, _ hash: String) throws -> (old: [UInt8], new: [UInt8]) {
        let old = try DurableFile.read(file, limit: ConfigFile.maximumBytes)
        guard Self.hash(old) == hash else {
            let before = begun.withLock { $0.first { $0.hash == hash }?.bytes } ?? version(of: hash)
            throw Fault.changed(before.map { TextDiff.lines(from: side($0), to: side(old)) } ?? [])
        }
        let new: [UInt8]
        switch wish {
        case .edits(let edits):
            do {
                new = try ConfigText(old, types: source.types, file: file.display).applying(edits)
            } catch let errors as ConfigErrors {
                throw Fault.refused("correct the file first: \(errors)")
            } catch let fault as ConfigEditFault {
                throw Fault.refused("\(fault)")
            }
        case .version(let name):
            guard names().contains(name) else { throw Fault.refused("there is no version \(name) any more") }
            new = try DurableFile.read(folder.appending(name), limit: ConfigFile.maximumBytes)
        }
        if new == old { throw Fault.refused("nothing would change") }
        return (old, new)
    }

    private func side(_ bytes: [UInt8]) -> TextDiff.Side {
        let defaults = ConfigDefaults(stateDirectory: "/", home: nil, workingDirectory: "/")
        return ConfigFile.side(bytes, file: file, types: source.types, defaults: defaults)
    }

    /// The former text with this hash.
    private func version(of hash: String) -> [UInt8]? {
        names().lazy.compactMap {
            DurableFile.readIfPossible(self.folder.appending($0), limit: ConfigFile.maximumBytes)
        }
        .first { Self.hash($0) == hash }
    }

    private func remember(_ hash: String, _ bytes: [UInt8]) {
        begun.withLock { begun in
            begun.removeAll { $0.hash == hash }
            begun.append((hash, bytes))
            if begun.count > Self.mostBegun { begun.removeFirst() }
        }
    }

    private static func hash(_ bytes: [UInt8]) -> String { SHA256.bytes(of: bytes).hex }

    // MARK: - The files that are there

    private static let mostFiles = 5000
    private static let mostShown = 50
    private static let patience = Duration.seconds(5)

    private struct Enough: Error {}

    /// nil while another trial lists.
    private func files(_ prepared: PreparedReload) async throws -> FileTrial? {
        guard
            isListing.withLock({ isListing in
                isListing
                    ? false
                    : {
                        isListing = true; return true
                    }()
            })
        else {
            return nil
        }
        defer { isListing.withLock { $0 = false } }
        let listing = BlockingPool(name: "trial", threads: 1)
        defer { listing.shutdown() }
        let journal = shared.journal
        return try await withTaskExecutorPreference(listing) {
            var run = DryRun(
                prepared.config.settings.routes, prepared.destinations, past: .live(journal), on: listing)
            var trial = FileTrial()
            trial.redact = prepared.config.redacted
            run.end = .now.advanced(by: Self.patience)
            do {
                // The newest folders come last in the file, and are why a person looks.
                for watch in prepared.config.settings.watch.reversed() {
                    try await Self.list(watch, &run, &trial)
                }
            } catch is Enough {
                trial.isPartial = true
            }
            return trial
        }
    }

    private static func list(_ watch: WatchSettings, _ run: inout DryRun, _ trial: inout FileTrial) async throws {
        do {
            var found = trial
            defer { trial = found }
            try await run.run(watch) { finding in
                found.add(finding, mostShown: mostShown)
                if found.planned + found.known + found.others >= mostFiles { throw Enough() }
            }
            if let end = run.end, .now >= end { throw Enough() }
        } catch let error as SystemError {
            // The agent waits for a folder that is not there.
            trial.add(
                DryRun.Finding(path: watch.path, size: 0, verdict: .unreadable("\(error)")), mostShown: mostShown)
        }
    }

    // MARK: - Writing

    /// Writes a change, and has it take effect. A change that then proves unusable is taken back.
    ///
    /// - Parameter by: who, for the log.
    /// - Throws: `Fault`, or `SystemError` before anything has changed.
    package func apply(_ wish: Wish, since hash: String, by who: String) async throws -> Applied {
        let written = try await pool.run { [self] in try write(wish, hash) }
        let outcome =
            written.restart == nil ? await reload.reload() : .done(changes: written.changes, parked: 0)
        switch outcome {
        case .done:
            let isUndo = if case .version = wish { true } else { false }
            shared.log.emit(
                .configEdited(file: file, by: who, changes: written.changes.map(\.path), isUndo: isUndo))
            await pool.run { [self] in prune() }
        case .refused, .failed: try await pool.run { [self] in try takeBack(written) }
        }
        return Applied(outcome: outcome, restart: written.restart)
    }

    private typealias Written = (
        old: [UInt8], new: [UInt8], kept: FilePath, changes: [ConfigChange], restart: String?
    )

    private func write(_ wish: Wish, _ hash: String) throws -> Written {
        if let objection = objection() { throw Fault.refused(objection) }
        let (old, new) = try texts(wish, hash)
        let prepared: PreparedReload
        do throws(ConfigErrors) { prepared = try check(new, wish) } catch { throw Fault.refused("\(error)") }
        let kept = try keep(old)
        do {
            // The very file that is about to be replaced.
            guard Self.hash(try DurableFile.read(kept, limit: ConfigFile.maximumBytes)) == hash else {
                throw Fault.changed([])
            }
            try DurableFile.replace(file, with: new)
        } catch {
            DurableFile.discard(kept)
            throw error
        }
        return (
            old, new, kept, changes(to: prepared), source.restartReason(prepared.config).map(prepared.config.redacted)
        )
    }

    /// Somebody else's text stays.
    private func takeBack(_ written: Written) throws {
        guard try DurableFile.read(file, limit: ConfigFile.maximumBytes) == written.new else { return }
        try DurableFile.replace(file, with: written.old)
        DurableFile.discard(written.kept)
    }

    /// Why the file cannot be written; nil where it can.
    private func objection() -> String? {
        guard shared.settings.settings.dashboard?.mayEdit == true else {
            return "the configuration does not allow changes on the page; add 'edit: true' to dashboard, and restart"
        }
        let real = file.realPath ?? file
        do throws(SystemError) {
            let owner = try FileOwner.ofFile(real)
            let user = ProcessSetup.userID
            if user != 0, owner.user != user || !ProcessSetup.groups.contains(owner.group) {
                return
                    "\(file.display) belongs to user \(owner.user) and group \(owner.group), and Inlet runs as user \(user), which cannot keep that; 'chown \(user) \(file.display)' gives it the file"
            }
            try DurableFile.requireWritable(real.removingLastComponent())
        } catch {
            return "the agent cannot write beside the configuration; its user must own that folder: \(error)"
        }
        if confinement?.mayWrite(in: real.removingLastComponent()) == false {
            return "the agent gave up writing in \(real.removingLastComponent().display) at its start; restart it"
        }
        return nil
    }

    // MARK: - Former versions

    private var folder: FilePath { (file.realPath ?? file).removingLastComponent() }
    private var name: String { (file.realPath ?? file).lastComponent?.string ?? "" }

    /// The names of former texts other than the present one, the newest first.
    private func versions(except present: [UInt8]) -> [String] {
        names().filter { name in
            DurableFile.readIfPossible(folder.appending(name), limit: ConfigFile.maximumBytes) != present
        }
    }

    /// All such names; a person's own files have others.
    private func names() -> [String] {
        var found: [String] = []
        do throws(SystemError) {
            var stream = try DirectoryStream(folder)
            while let entry = try stream.next() {
                if entry.kind == .regular, time(of: entry.name.string) != nil { found.append(entry.name.string) }
            }
        } catch {
            // Without permission to list there is nothing to go back to.
            return []
        }
        return found.sorted(by: >)
    }

    /// The time in the name of a former text; nil for other names.
    private func time(of text: String) -> String? {
        guard text.hasPrefix(name + ".") else { return nil }
        let match = text.dropFirst(name.count + 1).wholeMatch(of: /(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z)\.old/)
        return match.map { String($0.1) }
    }

    /// Gives the present file a second name, which it keeps when the new text takes its place: mode and owner with it.
    /// Where a file system has no such names, a copy does.
    private func keep(_ text: [UInt8]) throws -> FilePath {
        let path = folder.appending("\(name).\(nextTime()).old")
        do throws(SystemError) {
            try DurableFile.addName(path, to: file.realPath ?? file)
        } catch {
            // A file system without hard links; any other trouble meets the copy too.
            try DurableFile.create(text, at: path, mode: 0o600)
        }
        return path
    }

    /// Later than all that are there, also where the clock was set back.
    private func nextTime() -> String {
        func text(_ time: WallTime) -> String { time.rfc3339.replacing(":", with: "-") }
        var time = WallTime.now
        while let newest = names().first.flatMap({ self.time(of: $0) }), text(time) <= newest {
            time = max(time, WallTime(rfc3339: Self.rfc3339(newest)) ?? time) + .milliseconds(1)
        }
        return text(time)
    }

    /// `2026-11-27T15-05-01.123Z` as it was before it became a part of a name.
    private static func rfc3339(_ text: String) -> String {
        String(text.prefix(11)) + text.dropFirst(11).replacing("-", with: ":")
    }

    /// Drops the oldest. None is open to more people than the present text.
    private func prune() {
        let all = names()
        for old in all.dropFirst(Self.mostVersions) { DurableFile.discard(folder.appending(old)) }
        for kept in all.prefix(Self.mostVersions) {
            // One that cannot be changed is as it was kept.
            try? FileOwner.narrow(folder.appending(kept), to: file.realPath ?? file)
        }
    }
}

extension ConfigEditor.Wish {
    /// Whether a new value names a variable or a file.
    fileprivate var namesSources: Bool {
        guard case .edits(let edits) = self else { return false }
        return edits.contains { edit in
            switch edit.change {
            case .add(let name, let values):
                name?.contains("${") == true || JSONValue.object(values).text.contains("${")
            case .set(_, let values): JSONValue.object(values).text.contains("${")
            case .remove: false
            }
        }
    }
}

extension LoadedConfig {
    fileprivate func refusal(_ text: String) -> ConfigErrors {
        ConfigErrors(list: [error(at: SourcePosition(line: 1, column: 1), text)])
    }
}

extension ConfigEditor.FileTrial {
    fileprivate mutating func add(_ finding: DryRun.Finding, mostShown: Int) {
        switch finding.verdict {
        case .planned: planned += 1
        case .known: known += 1
        default: others += 1
        }
        if case .known = finding.verdict { return }
        if findings.count < mostShown { findings.append(finding) }
    }
}
