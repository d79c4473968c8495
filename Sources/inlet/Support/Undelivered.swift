import InletCore
import InletDashboard

/// What was named and has not arrived: no destination can be asked about it, and it must not pass for checked.
struct Undelivered {
    /// What was asked for; one of `jobs` and `batch` is.
    let wish: ProofRequest
    /// The jobs of which something has arrived.
    let seen: Set<Int64>

    func find(_ control: any ControlAPI) async throws -> [VerifyTally.Finding] {
        if wish.jobs.isEmpty { return try await ofBatch(control) }
        var known: Set<Int64> = []
        var found: [VerifyTally.Finding] = []
        for id in wish.jobs where known.insert(id).inserted {
            guard let job = try await control.find(Endpoints.job, [.id: "\(id)"]) else {
                found.append(VerifyTally.Finding(job: id, path: "", said: "there is no job \(id)"))
                continue
            }
            found += findings(of: job)
        }
        return found
    }

    private func findings(of job: JobReport) -> [VerifyTally.Finding] {
        let open = job.deliveries.filter { isOpen($0.destination, $0.state) }.map {
            VerifyTally.Finding(
                job: job.job, path: job.path, destination: $0.destination, key: $0.key, said: said($0.state, $0.reason))
        }
        guard open.isEmpty, !seen.contains(job.job) else { return open }
        let why =
            job.deliveries.isEmpty ? said(job.state, job.reason) : "no delivery of it is meant by the other options"
        return [VerifyTally.Finding(job: job.job, path: job.path, said: why)]
    }

    private func ofBatch(_ control: any ControlAPI) async throws -> [VerifyTally.Finding] {
        guard let batch = wish.batch, let report = try await control.find(Endpoints.offload, [.id: "\(batch)"]) else {
            return []
        }
        // In the place of one that is superseded there is its next version, with a job of its own.
        return report.files.filter { $0.state != FileState.superseded.rawValue }.flatMap { file in
            if file.deliveries.isEmpty, !Self.isDone(file.state) {
                return [VerifyTally.Finding(job: file.job, path: file.path, said: said(file.state, file.reason))]
            }
            return file.deliveries.filter { isOpen($0.destination, $0.state) }.map {
                VerifyTally.Finding(
                    job: file.job, path: file.path, destination: $0.destination, key: $0.key,
                    said: said($0.state, $0.reason))
            }
        }
    }

    private static func isDone(_ state: String) -> Bool {
        [FileState.delivered, .duplicate].map(\.rawValue).contains(state)
    }

    private func isOpen(_ destination: String, _ state: String) -> Bool {
        state != DeliveryState.delivered.rawValue && wish.destination.map { $0 == destination } ?? true
    }

    private func said(_ state: String, _ reason: String?) -> String { state + (reason.map { ": \($0)" } ?? "") }
}
