package layer3

// huffmanCodes are the tables of ISO/IEC 11172-3, table B.7: the codes of each in ascending order of their bits, for
// each its length as a letter (a is 1) and the two values that it stands for, in hexadecimal. No length and order but
// one gives these codes. 32 and 33 are those of four small values, which are the bits of the second digit.
var huffmanCodes = map[int]string{
	1: "c11c01b10a00",
	2: "f22f02e12e21e20c11c01c10a00",
	3: "f22f02e12e21e20c10b11b01b00",
	5: "h33h23g32f31g13g03g30g22f12f21f02f20c11c01c10a00",
	6: "g33g03f23f32f30e13e31e22e02d12d21d20c01b11c10c00",
	7: "j55j45j54j53i35i44i25i52h15h51i05i34h50i43i33h24h42g14g41g40h04h23h32h03g13g31g30g22f12e21f02f20d11c01c10a00",
	8: "k55k54j45i53j35j44i25i52i05h15h51i34i43i50i33h24h42h14g41h04h40h23h32h13h31h03h30f22f02f20d12d21b11c01c10b00",
	9: "i55i45h35h53i54i05h44h25h52h15g51g34g43h50h04g24g42g33g40f14f41f23f32e13e31f03f30e22e02d12d21d20c11c01c10c00",
	10: "k77k67k76k57k75k66j47j74j56j65j37j73j46k55k54j63i27i72j64j07i70i62j45j35i06j53j44h17h71i36i26j25j52i15i51j34" +
		"j43h16h61h60i05i50i24i42i33i04h14h41h40h23h32h03g13g31g30g22f12f21f02f20d11c01c10a00",
	11: "j77j67j76j75j66j47j74k57k55j56j65i37i73i46j45j54j35j53h27h72i64i07g71h17h70h36h63h60i44i25i52i05h15g62h26h06" +
		"g16g61h51h34h50i43i33h24h42h14h41h04h40g23g32f13f31g03g30f22e21d12e02e20c11c01c10b00",
	12: "j77j67i76i57i75i66i47i74i65h56h37i73i55h27h72h46h64h17h71i07i70h36h63h45h54h44i06i05g26g62g61h16h60h35h53h25" +
		"h52g15g51g34g43h50h04g24g42g14f33f41f23f32g40g03f30e13e31e22d12d21e02e20d00c11c01c10",
	13: "sfesfcrfdqedpffpefpdfpeepcfpdepbfpfbpcepdcqafqe9oecoddpfapcdobeoebo9fof9oeaobdodbo8fof8occpaep9eo8ep7fp7enf7" +
		"ndaoadobcocbof6n6fne8n5fn9dnd9nf5ne7nacnbbn4fnf4ocaoe6nf3m3fn8dnd8m2fmf2n6en9cm0fnc9n5emabn7dnd7m4enc8nd6m3e" +
		"mb9n9bnaal1flf1lf0mbame5me4m8cm6dme3le2m2em0el1ele1me0m5dmd5m7cmc7m4dm8bmb8md4m9ama9m6clc6l3dmd3m7bl2dld2l1d" +
		"lb7m5cmc5m99m7alc3ma7m97l4bkd1l0dld0l8ala8l4clc4l6blb6k3ck2ckc2k5blb5l89k1ckc1l98l0ckc0lb4l6ala6l79k3bkb3l88" +
		"l5ak2bla5l69ka4l78l87k94l77l76jb2j1bjb1k0bkb0k96k4ak3aka3k59k95j2aja2j1aja1k0ak68ja0k86k49j93k39k58k85k67j29" +
		"j92k57k75j38j83k66k47k74k56k65k73i19i91j09j90j48j84j72k46k64i28i82i18j37j27i17i71j55j07j70j36j63j45j54j26j62" +
		"j35h81i08i80i16i61i06i60j53j44i25i52i05h15h51i34i43i50i24i42i33h14g41h04h40h23h32g13g31g03g30g22f12f21f02f20" +
		"d11d01c10a00",
	15: "mffmefmfemdfleemfdmcfmfcmdemedmbflfbmcemeclddlaflfalbeleblcdldcl9flf9lealbdldbl8flf8lccl9ele9l7flf7ladldalbc" +
		"l6fmaem0fkcbkf6l8ele8l5fl9dkf5k7eke7kackcakbbld9l8dk4fkf4k3fkf3kd8ke6k2fkf2l6elf0k1fkf1k9ckc9k5ekabkbake5k7d" +
		"kd7k4eke4k8ckc8k3ek6dkd6ke3k9bkb9k2ekaake2k1eke1l0ele0k5dkd5k7ckc7k4dk8bjd4kb8k9aka9k6ckc6k3djd3jd2k2dk0dj1d" +
		"j7bjb7jd1k5ckd0jc5j8aja8j4cjc4j6bjb6k99k0cj3cjc3j7aja7ja6kc0k0bic2j2cj5bjb5j1cj89j98jc1j4bjb4j6aj3bj79ib3j97" +
		"j88j2bj5aib2ja5j1bib1jb0j69j96j4aja4j78j87j3aia3i59i95i2aia2i1aia1j0aja0i68i86i49i94i39i93j77j09i58i85i29i67" +
		"i76i92h91i19i90i48i84i57i75i38i83i66i47h28h82h18h81i74i08i80i56i65i37i73i46h27h72h64h17h55h71i07i70h36h63h45" +
		"h54h26h62h16i06i60h35g61h53h44g25g52g15g51h05h50g34g43g24g42g33f41g14g04f23f32g40g03f13f31f30e22e12e21e02e20" +
		"c11d01d10c00",
	16: "kefkfekdfkfdkcfkfckbfkfbjafkfak9fkf9kf8j8fj7fjf7j6fjf6hffj5fjf5i4fif4if3if0j3fpceqecqddodeoe9peapd9neeoedoeb" +
		"nbencdodcodbnaenccoadodao7eoacncaoc9o7dn5embdhf2i2fi0fh1fhf1m9enbcncbn8ene8n9dne7nbbn8dnd8n6eme6m9cnabnbane5" +
		"nd7m4ene4n8cmc8m3em6dnd6n9bnb9naame1md4nb8na9m7bnb7nd0le3m0eme0m5dmd5m7cmc7m4dm8bm9am6cmc6m3dm5cmc5l0dm8ama8" +
		"m99m4cmb6m7al3cm5bm89l1clc0m98m79ke2l2el1eld3l2dld2ld1l3bm97m88k1dlc4l6blc3la7k2clc2lb5lc1l0cl4blb4l6ala6kb3" +
		"l5ala5k2bkb2k1bkb1l0blb0l69l96l4ala4l78l87ka3l3al59k2al95l68ka1l86l77k94l49l57k67ja2j1ak0aka0k39k93k58k85j29" +
		"j92k76k09j19j91k90k48k84k75k38k83k66k28j82k47k74j18j81j80k08k56j37j73k65k46j27j72k64k55j07i17i71j70j36j63j45" +
		"j54j26i62i16i61j06j60i53j35j44i25i52h51i15i05i34i43i50i24i42i33h14h41i04i40h23h32g13g31h03h30g22f12f21f02f20" +
		"d11d01c10a00",
	24: "hefhfehdfhfdhcfhfchbfhfbgfahafh9fgf9gf8h8fh7fgf7g6fgf6g5fgf5g4fgf4g3fgf3g2fgf2gf1h1fhf0i0fkeekdekedkcekeckdd" +
		"kbekebkcdkdckaekeakbdkdbkcck9eke9kadkdakbckcbk8eke8k9dkd9k7eke7kacdffkcakbbk8dkd8l0ele0k0dje6k6ek9cjc9j5ejba" +
		"je5kabk7djd7je4j8cjc8k4ek2ej3ej6djd6je3j9bjb9jaaje2j1eje1j5djd5j7cjc7j4dj8bjb8jd4j9aja9j6cjc6j3djd3j2djd2j1d" +
		"j7bjb7jd1j5cjc5j8aja8j99j4cjc4j6bjb6kd0k0cj3cjc3j7aja7j2cjc2j5bjb5j1cj89j98jc1j4bkc0k0bj3bkb0k0aj1aib4j6aja6" +
		"j79j97ka0k09j90ib3i88j2bj5aib2ja5j1bjb1j69i96ia4j4aj78i87i3aia3i59i95i2aia2ia1i68i86i77i49i94i39i93i58i85i29" +
		"i67i76i92i19i91i48i84i57i75i38i83i66i28i82i18i47i74i81j08j80i56i65i17j07j70h73i37i27h72h46h64h55h71h36h63h45" +
		"h54h26h62h16h61i06i60h35h53h44h25h52h15i05i50g51h34h43g24g42g33g14g41h04h40g23g32f13f31g03g30f22e12e21f02f20" +
		"d11d01d10d00",
	32: "f0bf0ff0df0ef07f05e09e06e03e0ae0cd02d01d04d08a00",
	33: "d0fd0ed0dd0cd0bd0ad09d08d07d06d05d04d03d02d01d00",
}

// parents are the tables whose codes those after 15 have, with bits for larger values.
var parents = [32]struct{ table, more int }{
	16: {16, 1}, 17: {16, 2}, 18: {16, 3}, 19: {16, 4}, 20: {16, 6}, 21: {16, 8}, 22: {16, 10}, 23: {16, 13},
	24: {24, 4}, 25: {24, 5}, 26: {24, 6}, 27: {24, 7}, 28: {24, 8}, 29: {24, 9}, 30: {24, 11}, 31: {24, 13},
}
