import InletAgent
import InletCore
import InletDashboard
import InletLinux
import InletPipelines
import Synchronization
import SystemPackage

extension Destination {
    /// How long the destination may work on the object of `testUpload`.
    private static let patience = Duration.seconds(60)

    /// Why no test object is sent; nil where one is.
    private var noTestUpload: String? {
        if let storage = storage?.destination {
            return
                "nothing was registered as a test, because that would stay; '\(storage)', which stores its files, is tried"
        }
        return untried
    }

    /// `inlet check --upload`: sends one small object through the real pipeline, and a second one in parts where large
    /// files go in parts. Deletes both where the destination allows it.
    func testUpload() async throws(DeliveryError) -> [(Findings.Severity, String)] {
        if let why = noTestUpload { return [(.fine, why)] }
        let folder = FilePath(ProcessSetup.environment("TMPDIR") ?? "/tmp")
        let ext = testExtension
        let file = folder.appending("inlet-check-\(ProcessSetup.processID).\(ext)")
        do {
            try DurableFile.write(Array("inlet check, \(WallTime.now.rfc3339)\n".utf8), to: file, mode: 0o600)
        } catch {
            throw DeliveryError(.giveUp, .sourceUnreadable, "\(error)")
        }
        defer { DurableFile.discard(file) }
        let source: SourceFile
        do {
            source = try SourceFile(opening: file)
        } catch {
            throw DeliveryError(.giveUp, .sourceUnreadable, "\(error)")
        }
        let order = DeliveryOrder(
            id: 0, destination: name, key: "inlet-check/\(WallTime.now.milliseconds).\(ext)",
            mediaType: MediaType.byExtension(ext), fields: [:], source: source.opened)
        let notes = TestNotes()
        guard let proof = try await deliver(source, order, notes, by: pipeline) else {
            let left = await abandoning(order, notes, at: pipeline)
            return [(.warning, "took the test object, and is processing it\(left)")]
        }
        let stored = (Findings.Severity.fine, "stored a test object, \(Self.verified(proof))")
        guard let storage = pipeline as? any ObjectListing else { return [stored, await remove(proof)] }
        let composed = await compose(source, order, storage)
        let enforced = await overwriting(proof.key, storage)
        return [stored] + composed + enforced + [await remove(proof)]
    }

    private static func verified(_ proof: Proof) -> String {
        let checksum = proof.content?.digest.description ?? proof.details?[Proof.checksumName]
        return "verified by \(proof.method.rawValue)" + (checksum.map { " \($0)" } ?? "")
            + (proof.etag.map { ", ETag \($0)" } ?? "")
    }

    /// Large files are sent differently from small ones.
    private func compose(
        _ source: SourceFile, _ order: DeliveryOrder, _ storage: any ObjectListing
    ) async -> [(Findings.Severity, String)] {
        var order = order
        order.key += ".parts"
        let notes = TestNotes()
        do throws(DeliveryError) {
            guard let proof = try await deliver(source, order, notes, by: storage.composing) else {
                let left = await abandoning(order, notes, at: storage.composing)
                return [(.warning, "took a test object in parts, and is processing it\(left)")]
            }
            try await storage.remove(proof.key)
            return [(.fine, "composed one from parts, \(Self.verified(proof))")]
        } catch {
            let left = await abandoning(order, notes, at: storage.composing)
            return [(.warning, "sending in parts failed, which files over multipart_threshold need: \(error)\(left)")]
        }
    }

    /// How the store handles the conditional write that the settings rely on.
    private func overwriting(_ key: String, _ storage: any ObjectListing) async -> [(Findings.Severity, String)] {
        do throws(DeliveryError) {
            guard let refused = try await storage.refusesSecond(key) else { return [] }
            switch refused {
            case (true, true):
                return [(.fine, "the store honours If-None-Match, which 'if_exists: fail' and 'version' need")]
            case (true, false):
                return [
                    (
                        .warning,
                        "the store honours If-None-Match, except when it composes parts: there 'if_exists: fail' and "
                            + "'version' can overwrite an object that appears in the last moment"
                    )
                ]
            case (false, _):
                return [(.warning, "the store ignores If-None-Match: 'if_exists: fail' and 'version' would overwrite")]
            }
        } catch {
            return [(.warning, "whether the store honours If-None-Match could not be tried: \(error)")]
        }
    }

    /// nil when the destination does not finish its work in time.
    private func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ notes: TestNotes, by pipeline: any Pipeline
    ) async throws(DeliveryError) -> Proof? {
        let end = ContinuousClock.now.advanced(by: Self.patience)
        while true {
            let attempt = Attempt(checkpoint: notes.log, isStopping: { false })
            let until: WallTime
            switch try await pipeline.deliver(source, order, attempt) {
            case .delivered(let proof): return proof
            case .waiting(let time, _): until = time
            }
            let wait = max(until - .now, .milliseconds(100))
            guard ContinuousClock.now.advanced(by: wait) < end, await Task.rest(for: wait) else { return nil }
        }
    }

    /// Adds to `detail` how the deletion of the test object ended.
    private func abandoning(
        _ order: DeliveryOrder, _ notes: TestNotes, at pipeline: any Pipeline
    ) async -> String {
        do {
            try await pipeline.abandon(order, checkpoint: notes.all)
            return ""
        } catch {
            return "; the parts that were sent stay there: \(error)"
        }
    }

    private func remove(_ proof: Proof) async -> (Findings.Severity, String) {
        do {
            if let undo, proof.secrets != nil {
                _ = try await undo(proof)
            } else if let storage = pipeline as? any ObjectListing {
                try await storage.remove(proof.key)
            } else if folder != nil, let path = proof.url.map({ FilePath($0) }) {
                try DurableFile.remove(path)
            } else {
                return (.fine, "the test object \(proof.key) stays: this API has no call that deletes objects")
            }
            return (.fine, "the test object was removed")
        } catch {
            return (.warning, "the test object was not removed: \(error)")
        }
    }
}

/// The checkpoints of a delivery that is in no journal.
private final class TestNotes: Sendable {
    private let entries = Mutex<[String: [UInt8]]>([:])

    var all: [String: [UInt8]] { entries.withLock { $0 } }

    var log: CheckpointLog {
        CheckpointLog(
            entries: all,
            write: { added throws(DeliveryError) in self.entries.withLock { $0.merge(added) { $1 } } },
            replace: { all throws(DeliveryError) in self.entries.withLock { $0 = all } })
    }
}
