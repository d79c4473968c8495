import InletConfig
import InletCore
import InletDashboard
import InletLinux
import InletPipelines
import InletTransfer

// Parts of `inlet doctor`: the name, certificate, clock and answer of each destination.

extension Examination {
    /// A destination may have to be connected to several times.
    private static let destinationPatience = Duration.seconds(45)

    /// Asks all destinations everything at once, and lists what they say in the order of the configuration.
    mutating func lookAtDestinations(_ config: LoadedConfig) async {
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        let destinations: [Destination]
        do throws(ConfigErrors) {
            destinations = try config.tryDestinations(factory)
        } catch {
            return add(error, "destinations")
        }
        let (uses, pool) = (Self.uses(of: destinations, config, factory), pool)
        hosts = Dictionary(uses.map { ($0.name, $0.use.host) }, uniquingKeysWith: { first, _ in first })
        async let clocks = Self.all(uses, .clock) { part, name, use in await part.noteClock(name, use) }
        async let names = Self.all(uses, .network) { part, name, use in await part.noteName(name, use, on: pool) }
        async let certificates = Self.all(uses, .network) { part, name, use in await part.noteCertificate(name, use) }
        async let proxies = Self.answer(.network, "proxy", within: Self.destinationPatience) { part in
            await part.checkProxies(config, destinations, factory)
        }
        async let answers = Self.each(destinations) { made in await Self.answers(of: made, on: pool) }
        findings.append(await clocks + names + certificates + proxies)
        for (found, isLate) in await answers {
            findings.append(found)
            hasHung = hasHung || isLate
        }
        if !hasHung { await look(.destinations, "destinations") { $0.checkUse(of: destinations, config) } }
        findings.begin(.destinations)
        do throws(ConfigErrors) {
            findings.checkReceivers(config.settings.notify, try config.tryNotificationClients(factory))
        } catch {
            add(error, "notify")
        }
    }

    /// Whether a destination answers, and the room of one that is a folder. One whose disk hangs is not asked.
    private static func answers(
        of made: Destination, on pool: BlockingPool
    ) async -> (found: [CheckReport.Finding], isLate: Bool) {
        let name = "destination \(made.name)"
        let (room, isLate) = await looked(.destinations, name, on: pool) { part in
            if let folder = made.folder { part.noteSpace(name, at: folder) }
        }
        if isLate { return (room, true) }
        let answer = await answer(.destinations, name, within: destinationPatience) { part in
            await part.check(made, upload: false)
        }
        return (answer + room, false)
    }

    private mutating func add(_ errors: ConfigErrors, _ what: String) {
        findings.begin(.destinations)
        for fault in errors.list {
            findings.add(
                .wrong, what, "line \(fault.line): \(fault.message)", remedy: "correct the configuration",
                topic: .configuration)
        }
    }

    /// The way to each destination that is reached over a network.
    private static func uses(
        of destinations: [Destination], _ config: LoadedConfig, _ factory: PipelineFactory
    ) -> [(name: String, use: ProxyUse)] {
        destinations.compactMap { made in
            guard let settings = config.settings.destinations.first(where: { $0.name == made.name }),
                // The proxy's own line reports one that cannot be used.
                let use = (try? factory.proxyUse(of: made, settings)).flatMap(\.self)
            else { return nil }
            return ("destination \(made.name)", use)
        }
    }

    /// The findings on each way to a destination.
    private static func all(
        _ uses: [(name: String, use: ProxyUse)], _ group: Findings.Group,
        _ body: @escaping @Sendable (inout Findings, String, ProxyUse) async -> Void
    ) async -> [CheckReport.Finding] {
        await each(uses) { name, use in
            await answer(group, name, within: destinationPatience) { part in await body(&part, name, use) }
        }.flatMap(\.self)
    }

    /// The values for each of `subjects`, made at the same time and in their order.
    private static func each<Subject: Sendable, Value: Sendable>(
        _ subjects: [Subject], _ body: @escaping @Sendable (Subject) async -> Value
    ) async -> [Value] {
        await withTaskGroup(of: (Int, Value).self) { tasks in
            for (index, subject) in subjects.enumerated() { tasks.addTask { (index, await body(subject)) } }
            var found: [Int: Value] = [:]
            for await (index, value) in tasks { found[index] = value }
            return subjects.indices.compactMap { found[$0] }
        }
    }
}

extension Findings {
    /// The checks of `inlet check` on how the configuration uses its destinations.
    fileprivate mutating func checkUse(of destinations: [Destination], _ config: LoadedConfig) {
        let settings = config.settings
        checkAdoption(settings, destinations)
        checkNames(settings)
        for destination in destinations {
            if let results = destination.results { checkResults(results, of: destination.name, settings.watch) }
            checkStorage(of: destination, settings.destinations)
        }
        checkCopies(settings, destinations)
        checkKinds(settings)
    }

    // MARK: - Clock

    /// This much shows that nothing keeps a clock right.
    private static let largestDifference = Duration.seconds(30)
    /// Signatures bear 15 min, some servers less: from here on the clock may be the cause of what else is wrong.
    private static let harmfulDifference = Duration.seconds(300)

    /// Compares this machine's clock with the server's. Says nothing of a server that does not answer: others do.
    fileprivate mutating func noteClock(_ what: String, _ use: ProxyUse) async {
        // The destination's own check reports why.
        guard let difference = (try? await use.clockDifference()).flatMap(\.self) else { return }
        let size = max(difference, .zero - difference)
        let text = DurationText.format(.seconds(size.components.seconds))
        guard size > Self.largestDifference else {
            return add(.fine, what, "the server's clock agrees within \(max(1, size.components.seconds)) s")
        }
        add(
            .warning, what,
            "the server's clock is \(text) \(difference > .zero ? "ahead of" : "behind") this machine's",
            remedy: "set this machine's clock (timedatectl set-ntp true); if it is right, the server's is wrong",
            topic: size < Self.harmfulDifference ? .advice : .clock)
    }

    // MARK: - Name

    private static let namePatience = Duration.seconds(10)
    private static let slowName = Duration.seconds(2)

    /// Looks the server's name up, where that is up to this machine.
    fileprivate mutating func noteName(_ what: String, _ use: ProxyUse, on pool: BlockingPool) async {
        let host = use.host
        if let proxy = use.proxy { return add(.fine, what, "the proxy \(proxy) looks \(host) up") }
        if IPAddress(host) != nil { return add(.fine, what, "\(host) is an address: no name server is asked") }
        let start = ContinuousClock.now
        typealias Answer = Result<[String], NameLookup.Failure>
        let answer: Answer? = await pool.run {
            // Without a thread nothing is known; the destination's own check says what is missing.
            try? LoopThread.result(name: "name", within: Self.namePatience) { () throws(SystemError) -> Answer in
                Result { () throws(NameLookup.Failure) in try NameLookup.addresses(of: host) }
            }
        }
        let time = start.duration(to: .now)
        let remedy = "check the name and /etc/resolv.conf; 'getent hosts \(host)' must print an address"
        switch answer {
        case .success(let addresses)?:
            let isSlow = time > Self.slowName
            let found = addresses.count.counted("address", "addresses")
            add(
                isSlow ? .warning : .fine, what,
                "\(host) has \(found) (\(addresses.prefix(3).joined(separator: ", "))), found in \(time.milliseconds) ms",
                remedy: isSlow ? "ask a nearer name server: see /etc/resolv.conf" : nil, topic: isSlow ? .names : nil)
        case .failure(let failure)?:
            // Silence is no destination's own fault; an unknown name is.
            let text =
                failure.isSilence
                ? "no name server answers for \(host): \(failure)" : "\(host) has no address: \(failure)"
            add(failure.isSilence ? .unavailable : .wrong, what, text, remedy: remedy, topic: .names)
        case nil:
            let patience = DurationText.format(Self.namePatience)
            add(
                .unavailable, what, "no name server has answered for \(host) within \(patience)", remedy: remedy,
                topic: .names)
        }
    }

    // MARK: - Certificate

    /// How long before its end a certificate is due.
    private static let renewal = Duration.seconds(14 * 86_400)

    /// Whether a certificate should have been renewed. One that lives for days only is renewed by a program, which
    /// begins in the last third of its life.
    static func isDue(begins: WallTime?, ends: WallTime, at now: WallTime) -> Bool {
        let life = begins.map { ends - $0 } ?? renewal * 4
        return ends - now < min(renewal, life / 4)
    }

    /// The certificate that the server shows, whatever it is worth: whether it is trusted says the check.
    fileprivate mutating func noteCertificate(_ what: String, _ use: ProxyUse) async {
        guard use.isEncrypted else { return add(.fine, what, "\(use.host) is reached without TLS") }
        let peer: PeerCertificate
        do throws(DeliveryError) {
            guard let found = try await use.certificate() else {
                return add(.fine, what, "this libcurl does not show certificates")
            }
            peer = found
        } catch {
            return add(.unavailable, what, "its certificate cannot be read: \(error)", topic: ProblemTopic(error))
        }
        let words = "\(peer.version ?? "TLS"), certificate of \(peer.subject), issued by \(peer.issuer)"
        guard let end = peer.expires else { return add(.fine, what, words) }
        let left = end - .now
        let isDue = Self.isDue(begins: peer.begins, ends: end, at: .now)
        let days = left.components.seconds / 86_400
        let when =
            left > .zero ? "ends \(end.rfc3339Seconds) (in \(Int(days).counted("day")))" : "ended \(end.rfc3339Seconds)"
        add(
            isDue ? .warning : .fine, what, "\(words), \(when)",
            remedy: isDue ? "renew it at the server; if it is new, set this machine's clock" : nil,
            topic: isDue ? .certificate : nil)
    }
}
