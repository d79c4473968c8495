import InletAgent
import InletCore
import InletLinux
import InletPipelines
import SystemPackage

/// `inlet check --upload`: one small object through the real pipeline, and away again where the destination allows it.
struct TestUpload {
    private let destination: Destination

    init(_ destination: Destination) { self.destination = destination }

    func run() async throws(DeliveryError) -> [(Findings.Grade, String)] {
        let folder = FilePath(ProcessSetup.environment("TMPDIR") ?? "/tmp")
        let file = folder.appending("inlet-check-\(ProcessSetup.processID).txt")
        do {
            try DurableFile.write(Array("inlet check, \(WallTime.now.rfc3339)\n".utf8), to: file, mode: 0o600)
        } catch {
            throw DeliveryError(.giveUp, .sourceUnreadable, "\(error)")
        }
        defer { try? DurableFile.remove(file) }
        let source: SourceFile
        do {
            source = try SourceFile(opening: file)
        } catch {
            throw DeliveryError(.giveUp, .sourceUnreadable, "\(error)")
        }
        let order = DeliveryOrder(
            id: 0, destination: destination.name, key: "inlet-check/\(WallTime.now.milliseconds).txt",
            mediaType: "text/plain", fields: [:], source: source.opened)
        let notes = CheckpointLog(
            entries: [:], write: { _ throws(DeliveryError) in }, replace: { _ throws(DeliveryError) in })
        let attempt = Attempt(checkpoint: notes, isStopping: { false })
        guard case .delivered(let proof) = try await destination.pipeline.deliver(source, order, attempt) else {
            return [(.warning, "took the test object, and works on it")]
        }
        return [
            (
                .fine,
                "stored a test object, verified by \(proof.method.rawValue)" + (proof.etag.map { ", ETag \($0)" } ?? "")
            ),
            await remove(proof),
        ]
    }

    private func remove(_ proof: Proof) async -> (Findings.Grade, String) {
        if let storage = destination.pipeline as? any ObjectListing {
            do {
                try await storage.remove(proof.key)
                return (.fine, "the test object was removed")
            } catch {
                return (.warning, "the test object \(proof.key) was not removed: \(error)")
            }
        }
        guard destination.type == "folder", let path = proof.url.map({ FilePath($0) }) else {
            return (.fine, "the test object \(proof.key) stays: this API has no call that deletes objects")
        }
        do {
            try DurableFile.remove(path)
            return (.fine, "the test object was removed")
        } catch {
            return (.warning, "the test object was not removed: \(error)")
        }
    }
}
