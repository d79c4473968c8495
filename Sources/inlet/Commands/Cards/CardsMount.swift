import ArgumentParser
import InletCore
import InletLinux
import SystemPackage

struct CardsMount: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mount",
        abstract: "Mount a card read-only, on a machine without a desktop.",
        discussion: """
            Mounts the card in a folder of its label, such as /media/inlet/EOS_DIGITAL, and prints that folder. A second
            card of the same label gets EOS_DIGITAL-2. Nothing on the card changes, not even a journal or an access time.
            Programs and devices on it cannot be used. Watch the cards with the path /media/inlet/*/DCIM.

            A card that is mounted there already stays as it is. Refuses disks that are mounted elsewhere, whole disks with
            partitions, and disks that are not removable. Needs root. Exits with 1 when the card is not mounted.

            Examples:
              sudo inlet cards mount /dev/sdb1
              sudo inlet cards mount /dev/mmcblk0p1 --write
              sudo inlet cards mount /dev/vdb1 --not-removable --in /srv/cards
            """)

    @Argument(help: "The card's partition; 'lsblk -f' lists them.", completion: .file()) var device: String
    @Flag(help: "Let Inlet move, delete and write files on it.") var write = false
    @Option(
        name: .customLong("in"),
        help: ArgumentHelp("The folder for all cards; /media/inlet by default.", valueName: "folder"),
        completion: .directory)
    var base: String?
    @Flag(help: "Mount a disk that cannot be taken out, such as a virtual one.") var notRemovable = false

    func run() async throws {
        let mount = CardMount(
            base: base.map { FilePath($0) }, writes: write, mayBeFixed: notRemovable,
            pool: BlockingPool(name: "cards", threads: 2))
        do throws(CardMount.Refused) {
            Console.print(try await mount.mount(FilePath(device)).point.display)
        } catch {
            throw ExitStatus.failed.saying("\(error)")
        }
    }
}
