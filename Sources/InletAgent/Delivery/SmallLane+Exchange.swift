internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization

/// What goes between the lane and the journal: ends for claims, and what the journal refuses.
extension SmallLane {
    /// - Returns: nil when the journal took nothing; what had ended is then kept for the next time.
    func exchange(_ ended: [Ended], _ rooms: [ClaimRoom], _ places: Int) async -> Exchange? {
        if ended.isEmpty, places == 0 { return Exchange(settled: [], claims: [], nextDue: nil) }
        let rooms = rooms.map { room in
            var room = room
            room.limits = room.limits.mapValues(Self.most)
            return room
        }
        let wish = ClaimWish(lane: .small, rooms: rooms, most: places, owner: "\(Lane.small)")
        let error: JournalError
        switch await commit(ended, wish) {
        case .success(let exchange): return exchange
        case .failure(let refusal): error = refusal
        }
        // One that the journal refuses must keep neither the others from their proofs nor the lane from its work.
        let refused = await settleSingly(ended, error)
        // Where it is refused too, the first refusal is told below.
        let exchange = ended.isEmpty ? nil : try? await commit([], wish).get()
        if exchange != nil || refused.count < ended.count {
            keep(refused)
        } else {
            health.fails(error)
            shared.state.withLock { $0.ended.insert(contentsOf: refused, at: 0) }
        }
        return exchange
    }

    private func commit(_ ended: [Ended], _ wish: ClaimWish) async -> Result<Exchange, JournalError> {
        let claims = ended.map { EndedClaim($0.claim, $0.settlement) }
        do throws(JournalError) {
            if !claims.isEmpty { Failpoint.settling.reached() }
            let exchange = try await journal.exchange(claims, for: wish, ending: Receipt.atOnce, at: .now)
            follow(ended, exchange)
            let away = ended.filter { $0.report?.awaitsSource == true }
            if !away.isEmpty { await ends.freeReturned(away.map(\.claim.file), journal, health) }
            return .success(exchange)
        } catch {
            return .failure(error)
        }
    }

    private func follow(_ ended: [Ended], _ exchange: Exchange) {
        // One that only looked has written nothing.
        if ended.count + exchange.claims.count > 0 { health.works() }
        let hasSurplus = shared.state.withLock { state in
            state.stock.add(exchange.claims)
            return state.stock.hasSurplus
        }
        loopSignal.raise(exchange.claims.count)
        tell(zip(ended, exchange.settled).map { ($0, $1) })
        ends.tell(exchange.damaged)
        // Only now it is known to wait: whoever keeps the expiry clocks may have looked in vain.
        if hasSurplus || ended.contains(where: \.isBack) { signals.raise(.expirable) }
    }

    /// - Parameter error: what came of settling them together.
    /// - Returns: what the journal did not take.
    private func settleSingly(_ ended: [Ended], _ error: JournalError) async -> [Ended] {
        var refused: [(Ended, JournalError)] = []
        if ended.count == 1 {
            refused = [(ended[0], error)]
        } else {
            let wish = ClaimWish(lane: .small, rooms: [], most: 0, owner: "")
            for one in ended {
                if case .failure(let error) = await commit([one], wish) { refused.append((one, error)) }
            }
        }
        return refused.map { one, error in
            var one = one
            one.refusal = ends.refused(one.claim.file, error, saidLast: one.refusal, health)
            return one
        }
    }

    func settleRefused() async {
        let due = shared.state.withLock { state -> [Ended] in
            guard let time = state.nextTry, time <= .now || isStopping.isSet else { return [] }
            defer { state.refused = [] }
            return state.refused
        }
        let wish = ClaimWish(lane: .small, rooms: [], most: 0, owner: "")
        guard !due.isEmpty, case .failure(let error) = await commit(due, wish) else { return }
        keep(await settleSingly(due, error))
    }

    /// Tries again in a while what the journal refused.
    private func keep(_ refused: [Ended]) {
        shared.state.withLock { state in
            state.refused += refused
            state.refusedUntil = .now.advanced(by: Self.journalPause)
        }
    }

    /// All their lines in one write.
    private func tell(_ ends: [(ended: Ended, settled: SettledFile)]) {
        for (ended, _) in ends {
            if case .expired = ended.settlement {
                self.ends.log.emit(.expired(ended.claim.file, ended.claim.delivery.destination))
            }
        }
        self.ends.log.emit(ends.flatMap { DeliveryEnds.events($0.report, $0.claim.file, $1) })
        for (ended, settled) in ends { self.ends.pass(ended.report, ended.claim.file, settled, .small) }
    }
}
