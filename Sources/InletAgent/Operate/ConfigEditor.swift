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
    private var versions: ConfigVersions { ConfigVersions(file: file.realPath ?? file) }

    /// The JSON schema of the file.
    package var schema: String { ConfigSchema.json(types: source.types) }

    // MARK: - Looking

    /// - Throws: the reason that the file cannot be read.
    package func form() async throws -> Form {
        try await pool.run { [self] in
            let bytes = try DurableFile.read(file, limit: ConfigFile.maximumBytes)
            var form = Form(
                file: file, hash: Self.hash(bytes), objection: objection(), versions: versions.names(except: bytes))
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
        let (prepared, trial, mayEdit) = try await pool.run { [self] in
            let (old, new) = try texts(wish, hash)
            let compared = Trial(diff: TextDiff.lines(from: side(old), to: side(new)))
            let mayEdit = trust == .editor && objection() == nil
            guard mayEdit || (trust != .reader && !wish.namesSources) else {
                return (PreparedReload?.none, compared, false)
            }
            let (prepared, checked) = examined(new, compared)
            return (prepared, checked, mayEdit)
        }
        guard mayEdit, let prepared else { return trial }
        var whole = trial
        whole.files = try await files(prepared)
        return whole
    }

    /// - Returns: the configuration, if it can be used; and the trial with what was found.
    private func examined(_ text: [UInt8], _ compared: Trial) -> (PreparedReload?, Trial) {
        var trial = compared
        trial.isChecked = true
        do throws(ConfigErrors) {
            let prepared = try check(text)
            trial.changes = changes(to: prepared)
            trial.warnings = prepared.config.warnings.map { ConfigFault($0) }
            trial.restart = restartReason(prepared)
            return (prepared, trial)
        } catch {
            trial.errors = error.list.map { ConfigFault($0) }
            return (nil, trial)
        }
    }

    private func restartReason(_ prepared: PreparedReload) -> String? {
        source.restartReason(prepared.config).map(prepared.config.redacted)
    }

    private func changes(to prepared: PreparedReload) -> [ConfigChange] {
        ConfigDiff.changes(from: reload.running, to: prepared.config, types: source.types)
    }

    /// The checks of a start, and some more: a login at the page must not become a way to run programs.
    private func check(_ text: [UInt8]) throws(ConfigErrors) -> PreparedReload {
        let prepared = try source.check(text)
        func plan(_ config: LoadedConfig) -> AccessPlan { AccessPlan(config, home: nil) { _ in nil } }
        let next = plan(prepared.config)
        if let program = next.beyond(plan(reload.running).commands) {
            throw prepared.config.refusal("the program '\(program)' is new; put it into the file itself")
        }
        // Its names could be those of the configuration, or of a former version.
        if let place = next.needs.first(where: {
            $0.mayWrite && $0.kind == .coming && versions.folder.isWithin($0.path)
        }) {
            throw prepared.config.refusal(
                "files that arrive in \(place.path.display) could replace the configuration, which lies below it")
        }
        return prepared
    }

    private func texts(_ wish: Wish, _ hash: String) throws -> (old: [UInt8], new: [UInt8]) {
        let old = try DurableFile.read(file, limit: ConfigFile.maximumBytes)
        guard Self.hash(old) == hash else {
            let before =
                begun.withLock { $0.first { $0.hash == hash }?.bytes } ?? versions.texts.first { Self.hash($0) == hash }
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
            guard let text = try versions.text(of: name) else {
                throw Fault.refused("there is no version \(name) any more; load the page again")
            }
            new = text
        }
        if new == old { throw Fault.refused("nothing would change") }
        return (old, new)
    }

    private func side(_ bytes: [UInt8]) -> TextDiff.Side {
        let defaults = ConfigDefaults(stateDirectory: "/", home: nil, workingDirectory: "/")
        return ConfigFile.side(bytes, file: file, types: source.types, defaults: defaults)
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
        let isFree = isListing.withLock { isTaken in
            defer { isTaken = true }
            return !isTaken
        }
        guard isFree else { return nil }
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
            await pool.run { [versions] in versions.prune() }
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
        do throws(ConfigErrors) { prepared = try check(new) } catch { throw Fault.refused("\(error)") }
        let kept = try versions.keep(old)
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
        return (old, new, kept, changes(to: prepared), restartReason(prepared))
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
