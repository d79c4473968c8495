internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines

/// Asks the destinations of a file that was not sent whether they have its content now, before the file is removed.
/// Without a proof the file stays.
struct CopyQuestion: Sendable {
    let shared: Shared

    /// Before a destination that does not answer counts as one that has nothing. Reading a big object takes longer than
    /// any other question.
    var patience = Duration.seconds(3600)

    func ask(of job: Job) async -> CopyProof {
        let here: Set<Int64>
        do {
            here = try await shared.journal.standing(of: job)
        } catch {
            return .unproved("the journal does not answer: \(error)")
        }
        var found: [String] = []
        for row in job.deliveries {
            guard row.state == .delivered, let proof = row.proof else {
                return .unproved("it is not delivered to \(row.destination)")
            }
            // A destination that only registers files has no bytes.
            if proof.method == .registered { continue }
            guard here.contains(row.id) else {
                return .unproved("\(row.destination) is at another address now, or the object was deleted there")
            }
            switch await answer(row.destination, proof, job.file) {
            case .proved(let how): found.append("\(row.destination) has it (\(how))")
            case .unproved(let why): return .unproved("\(row.destination): \(why)")
            }
        }
        if found.isEmpty { return .unproved("no destination has its bytes") }
        return .proved("\(found.joined(separator: ", ")), asked \(WallTime.now.rfc3339Seconds)")
    }

    private func answer(_ name: String, _ proof: Proof, _ file: FileRow) async -> CopyProof {
        guard let destination = shared.destinations[name] else { return .unproved("it is not in the configuration") }
        guard let verifier = destination.pipeline as? any DeliveryVerifying else {
            return .unproved("destinations of type \(destination.type) cannot be asked")
        }
        guard proof.sameAs != nil, proof.content != nil, proof.size == file.identity.size else {
            return .unproved("there is no checksum to compare with")
        }
        let patience = patience
        return await withTaskGroup(of: CopyProof.self) { group in
            group.addTask { await Self.answer(verifier, proof, file.digests) }
            group.addTask {
                // Cancelled when the destination has answered; the answer is read first.
                await Task.rest(for: patience)
                return .unproved("it gave no answer within \(patience)")
            }
            defer { group.cancelAll() }
            return await group.next() ?? .unproved("it gave no answer")
        }
    }

    /// A tag that the store computed from the bytes is a proof; a length alone is none, and then every byte is read.
    private static func answer(
        _ verifier: any DeliveryVerifying, _ proof: Proof, _ digests: [Digest]
    ) async -> CopyProof {
        do throws(DeliveryError) {
            for readsBytes in [false, true] {
                let order = VerifyOrder(proof: proof, digests: digests, readsBytes: readsBytes)
                switch try await verifier.verify(order) {
                case .same(let how) where how.hasPrefix("all bytes read") || how == "length, tag": return .proved(how)
                case .same, .cannotTell: continue
                case .differs(let why), .missing(let why): return .unproved(why)
                }
            }
            return .unproved("it cannot tell what the content is")
        } catch {
            return .unproved("it does not answer: \(error)")
        }
    }
}
