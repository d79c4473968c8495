import ArgumentParser
import InletCore
import InletLinux
import SystemPackage

struct CardsUnmount: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unmount",
        abstract: "Unmount a card, without asking whether it is copied.",
        discussion: """
            Does nothing where the card is not mounted. A card in use stays mounted, unless it is pulled already. Exits
            with 1 when it stays mounted.

            Examples:
              sudo inlet cards unmount /dev/sdb1
              sudo inlet cards unmount /media/inlet/EOS_DIGITAL
            """)

    @Argument(help: "The card's partition, or the folder where it is mounted.", completion: .file()) var place: String

    private static let timeout = Duration.seconds(60)

    func run() async throws {
        do throws(CardMount.Refused) {
            Console.print(
                try await CardMount.unmount(
                    FilePath(place), timeout: Self.timeout, pool: BlockingPool(name: "cards", threads: 2)))
        } catch {
            throw ExitStatus.failed.saying("\(error)")
        }
    }
}
