package import InletCore
internal import InletTransfer

/// Small files that need one request each: their PUTs are signed one after the other, and share a thread.
extension S3Pipeline: BurstPipeline {
    package var burstLimit: Int? {
        // Looking at what is there comes first.
        if settings.ifExists == .skipSame || api.client.isLimited { return nil }
        let most = min(Int64(PartSender.smallest), settings.multipartThreshold, settings.maxObjectSize)
        return most >= 0 ? Int(most) : nil
    }

    package func burst(
        _ files: [BurstFile], most: Int, ended: @escaping @Sendable ([(index: Int, end: BurstEnd)]) -> Void
    ) throws(DeliveryError) -> Burst {
        let proof = settings.sliceProof
        let kinds = proof.kind == .md5 ? proof.ahead.union([.md5]) : proof.ahead
        var sent: [BurstPut] = []
        var requests: [HTTPRequest] = []
        sent.reserveCapacity(files.count)
        requests.reserveCapacity(files.count)
        for (file, sums) in zip(files, SliceHasher.sums(kinds, ofEach: files.map(\.content))) {
            let put = BurstPut(order: file.order, target: S3Store(api: api, order: file.order).wholeTarget, sums)
            requests.append(try put.target.request(.bytes(file.content), sums))
            sent.append(put)
        }
        do throws(TransferError) {
            let batch = try api.client.batch(requests, most: most) { [sent] answers in
                ended(answers.map { ($0.index, sent[$0.index].end($0.result, proof.kind)) })
            }
            return Burst(batch: batch)
        } catch {
            throw DeliveryError(error)
        }
    }
}

/// One file's request on its way.
private struct BurstPut: Sendable {
    let order: DeliveryOrder
    let target: S3Target
    let sums: SliceSums

    init(order: DeliveryOrder, target: S3Target, _ sums: SliceSums) {
        (self.order, self.target, self.sums) = (order, target, sums)
    }

    func end(_ result: Result<HTTPResponse, TransferError>, _ kind: SliceProof.Kind) -> BurstEnd {
        if case .success(let answer) = result, let part = target.verified(answer, sums, kind) {
            let location = S3Store(api: target.api, order: order).location(order.key, answered: nil)
            return .delivered(PartSender.proof(of: order, by: part, at: location))
        }
        return .continues(FirstAnswer(result.mapError { DeliveryError($0) }, mayHaveArrived: Self.mayHaveArrived(result)))
    }

    private static func mayHaveArrived(_ result: Result<HTTPResponse, TransferError>) -> Bool {
        guard case .failure(let error) = result else { return true }
        return ![.connectFailed, .nameNotFound, .tlsFailed, .proxyRefused, .outOfResources].contains(error.code)
    }
}
