package import InletCore
internal import InletTransfer
internal import Synchronization

/// Small files that need one request each: their PUTs are signed one after the other, and share a thread.
extension S3Pipeline: BurstPipeline {
    package var burstLimit: Int? {
        // Looking at what is there comes first, and so does asking the store what it compares.
        if settings.ifExists == .skipSame || api.client.isLimited || knownProving == nil { return nil }
        let most = min(Int64(PartSender.smallest), settings.multipartThreshold, settings.maxObjectSize)
        return most >= 0 ? Int(most) : nil
    }

    package var burstConnections: Int { settings.connections ?? pace.limit }

    package func burst(
        _ files: [BurstFile], ended: @escaping @Sendable ([(index: Int, end: BurstEnd)]) -> Void
    ) throws(DeliveryError) -> Burst {
        // An attempt asks anew.
        guard let proving = knownProving else { throw DeliveryError(.retry(after: nil), .uploadGone, "not asked yet") }
        let proof = proving.slices(isEncrypted: settings.base.scheme == "https")
        let kinds = proof.kind == .md5 ? proof.ahead.union([.md5]) : proof.ahead
        var sent: [BurstPut] = []
        var requests: [(request: HTTPRequest, meter: TransferMeter)] = []
        sent.reserveCapacity(files.count)
        requests.reserveCapacity(files.count)
        for (file, sums) in zip(files, SliceHasher.sums(kinds, ofEach: files.map(\.content))) {
            let store = S3Store(api: api, order: file.order, proving: proving)
            let put = BurstPut(store, sums)
            requests.append((try put.target.request(.bytes(file.content), sums), put.meter))
            sent.append(put)
        }
        do throws(TransferError) {
            let batch = try api.client.batch(requests, most: burstConnections) { [sent, pace] answers in
                pace.heard(answers.map(\.result))
                ended(answers.map { ($0.index, sent[$0.index].end($0.result, proof.kind)) })
            }
            return Burst(start: batch.start, cancel: batch.cancel)
        } catch {
            throw DeliveryError(error)
        }
    }
}

/// The pace of one destination, told by all its bursts.
final class BurstPace: Sendable {
    private let pace = Mutex(AnswerPace())

    var limit: Int { pace.withLock { $0.limit } }

    func heard(_ results: [Result<HTTPResponse, TransferError>]) {
        let answers = results.compactMap { if case .success(let answer) = $0 { answer } else { nil } }
        let good = answers.filter(\.isSuccess)
        pace.withLock { pace in
            let refusals = answers.count { $0.status == 429 || $0.status == 503 }
            if refusals > 0 { pace.refused(refusals) }
            if let delay = good.map(\.delay).min() { pace.answered(good.count, after: delay) }
        }
    }
}

/// One file's request on its way.
private struct BurstPut: Sendable {
    let store: S3Store
    let target: S3Target
    let sums: SliceSums
    let meter = TransferMeter()

    init(_ store: S3Store, _ sums: SliceSums) { (self.store, target, self.sums) = (store, store.wholeTarget, sums) }

    func end(_ result: Result<HTTPResponse, TransferError>, _ kind: SliceProof.Kind) -> BurstEnd {
        if case .success(let answer) = result, let part = target.verified(answer, sums, kind) {
            let (order, location) = (store.order, store.location(store.order.key, answered: nil))
            return .delivered(PartSender.proof(of: order, by: part, at: location))
        }
        // By what was asked for here: the attempt may ask for another checksum by then.
        let first = result.mapError { DeliveryError($0) }.flatMap { answer in
            answer.isSuccess ? .success(answer) : .failure(target.refusal(answer, PartSender.name(of: store.order)))
        }
        return .continues(FirstAnswer(first, from: target.address, mayHaveArrived: mayHaveArrived(result)))
    }

    /// As for a request of its own (`PartSender.sendWhole`). curl may have sent it twice: the last error alone does not
    /// tell.
    private func mayHaveArrived(_ result: Result<HTTPResponse, TransferError>) -> Bool {
        // Another object has the key.
        if case .success(let answer) = result, answer.status == 412 { return false }
        return meter.hasStarted || store.order.source.size == 0
    }
}
